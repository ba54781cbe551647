/** The frame of the pages that are ours: readable on a phone, no script, no asset. */
export const page = (title: string, body: string): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Sendonce</title>
<style>
  :root { color-scheme: light dark; }
  body { font: 1rem/1.55 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
  code, pre { font-family: ui-monospace, monospace; font-size: .9em; }
  pre { overflow-x: auto; padding: .75rem 1rem; border: 1px solid #8886; border-radius: .4rem; }
  table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top; padding: .4rem .6rem; border-bottom: 1px solid #8886; }
  nav { margin-bottom: 2rem; }
</style>
<nav><a href="/docs">API</a> · <a href="/docs/which-key">Which key?</a> · <a href="/problems">Problems</a> · <a href="/console">Console</a></nav>
<h1>${title}</h1>
${body}
</html>
`
