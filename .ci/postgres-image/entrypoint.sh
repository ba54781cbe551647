#!/usr/bin/env bash
# Starts PostgreSQL as the official image does: POSTGRES_PASSWORD (required), POSTGRES_USER and POSTGRES_DB say
# what the first start creates; arguments go to the server (`-c name=value`); another command is run as it is.
set -euo pipefail

if [[ ${1:-} == -* ]]; then set -- postgres "$@"; fi
if [[ ${1:-} != postgres ]]; then exec "$@"; fi

# The server refuses to run as root. A mounted data directory may belong to root.
if [[ $(id -u) == 0 ]]; then
  mkdir -p "$PGDATA"
  chown -R postgres:postgres "$PGDATA"
  chmod 700 "$PGDATA"
  HOME=/var/lib/postgresql exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

if [[ ! -s $PGDATA/PG_VERSION ]]; then
  : "${POSTGRES_PASSWORD:?POSTGRES_PASSWORD must be set}"
  user=${POSTGRES_USER:-postgres}
  database=${POSTGRES_DB:-$user}

  initdb --username="$user" --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD") --encoding=UTF8 \
    --auth-local=trust --auth-host=scram-sha-256
  echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"

  # Create the database in a server that only the socket reaches, so that whoever can connect over TCP finds it
  # there. Clients that wait for "ready to accept connections" wait for its second time, as with the official image.
  pg_ctl -o "-c listen_addresses=''" -w start
  if [[ $database != postgres ]]; then
    psql --username="$user" --dbname=postgres --no-psqlrc --set=ON_ERROR_STOP=1 --set=database="$database" \
      <<<'CREATE DATABASE :"database"'
  fi
  pg_ctl -m fast -w stop
fi

exec "$@"
