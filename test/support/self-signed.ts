/** A key and a certificate for 127.0.0.1 that signs itself, made on the spot: for servers that must speak TLS. */
import { generateKeyPairSync, sign } from 'node:crypto'

const der = (tag: number, ...contents: readonly Uint8Array[]): Buffer => {
  const content = Buffer.concat(contents)
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}
const bytes = (hex: string): Buffer => Buffer.from(hex, 'hex')
const sequence = (...contents: readonly Uint8Array[]): Buffer => der(0x30, ...contents)
const oid = (hex: string): Buffer => der(0x06, bytes(hex))
const utcTime = (at: Date): Buffer =>
  der(
    0x17,
    Buffer.from(
      `${at
        .toISOString()
        .replaceAll(/[-:T]|\.\d+Z/g, '')
        .slice(2)}Z`,
    ),
  )

const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'))
const commonName = sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from('sendonce test')))))
const isAuthority = sequence(oid('551d13'), der(0x04, sequence(der(0x01, bytes('ff')))))
const forLoopback = sequence(oid('551d11'), der(0x04, sequence(der(0x87, Buffer.from([127, 0, 0, 1])))))

/** @returns both as PEM */
export function selfSigned(): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const day = 86_400_000
  const toBeSigned = sequence(
    der(0xa0, der(0x02, bytes('02'))), // version 3
    der(0x02, bytes('01')),
    ecdsaWithSha256,
    commonName,
    sequence(utcTime(new Date(Date.now() - day)), utcTime(new Date(Date.now() + day))),
    commonName,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(isAuthority, forLoopback)),
  )
  const signature = der(0x03, bytes('00'), sign('sha256', toBeSigned, privateKey))
  const base64 = sequence(toBeSigned, ecdsaWithSha256, signature).toString('base64')
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${base64.replaceAll(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
  }
}
