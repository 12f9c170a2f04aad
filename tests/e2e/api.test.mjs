// What clients get wrong, and what a full node says: status, {code, message}, and nothing half-made.

import assert from 'node:assert/strict'
import net from 'node:net'
import { after, before, test } from 'node:test'
import { Sandbox } from 'e2b'
import { Node, until } from '../lib/node.mjs'
import { processesOf } from '../lib/host.mjs'

let node
let sandbox

before(async () => {
  node = await Node.start('api', '--max-sandboxes', '2')
  sandbox = await Sandbox.create()
}, { timeout: 180_000 })

after(async () => {
  await node?.stop()
}, { timeout: 60_000 })

const create = (more) => ['POST', '/v2/sandboxes', { templateID: 'base', ...more }]
const big = 'x'.repeat(300 * 1024)

const refused = [
  // says, call, status, a part of the message
  ['no key', ['GET', '/sandboxes', undefined, { 'X-API-KEY': '' }], 401, /key/i],
  ['a wrong key', ['GET', '/sandboxes', undefined, { 'X-API-KEY': `e2b_${'0'.repeat(40)}` }], 401, /key/i],
  ['a key and a little more', ['GET', '/sandboxes', undefined, { 'X-API-KEY': 'KEYx' }], 401, /key/i],
  ['no such path', ['GET', '/nothing'], 404, /path/],
  ['a method that is not there', ['PATCH', '/v2/sandboxes'], 405, /method/],
  ['a body that is no JSON', ['POST', '/v2/sandboxes', '{"templateID":'], 400, /JSON|json/],
  ['a body that is no object', ['POST', '/v2/sandboxes', '[1]'], 400, /./],
  ['the same field twice', ['POST', '/v2/sandboxes', '{"templateID":"base","templateID":"base"}'], 400, /./],
  ['nested without end', ['POST', '/v2/sandboxes', `{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`], 400, /./],
  ['no template', ['POST', '/v2/sandboxes', '{}'], 400, /templateID/],
  ['a template that is a number', create({ templateID: 7 }), 400, /templateID/],
  ['an unknown template', create({ templateID: 'nothing' }), 404, /template 'nothing' not found/],
  ['a template that is a path', create({ templateID: '../../etc/passwd' }), 404, /not found/],
  ['timeout 0', create({ timeout: 0 }), 400, /^Timeout must be greater than 0$/],
  ['timeout below 0', create({ timeout: -1 }), 400, /^Timeout must be greater than 0$/],
  ['timeout above the limit', create({ timeout: 1e9 }), 400, /^Timeout cannot be greater than \d+ hours$/],
  ['timeout 1.5', create({ timeout: 1.5 }), 400, /timeout/],
  ['timeout as text', create({ timeout: '60' }), 400, /timeout/],
  ['metadata that is no text', create({ metadata: { a: 1 } }), 400, /metadata/],
  ['a variable with = in its name', create({ envVars: { 'A=B': 'c' } }), 400, /envVars/],
  ['too many variables', create({ envVars: Object.fromEntries(Array.from({ length: 257 }, (_, i) => [`V${i}`, ''])) }), 400, /envVars/],
  ['a body above the limit', create({ metadata: { a: big } }), 413, /long/],
  ['autoPauseMemory without autoPause', create({ autoPauseMemory: false }), 400, /autoPause/],
  ['what is not there yet', create({ autoPause: true }), 501, /autoPause/],
  ['a sandbox that is not there', ['GET', '/sandboxes/inothing'], 404, /./],
  ['a sandbox id that is none', ['DELETE', '/sandboxes/..%2f..'], 404, /./],
  ['limit 0 of a list', ['GET', '/v2/sandboxes?limit=0'], 400, /limit/],
  ['limit 101 of a list', ['GET', '/v2/sandboxes?limit=101'], 400, /limit/],
  ['an unknown state in a list', ['GET', '/v2/sandboxes?state=asleep'], 400, /state/],
  ['a forged token of a list', ['GET', '/v2/sandboxes?nextToken=%00%ff'], 400, /nextToken/],
]

for (const [says, [method, target, body, headers], status, message] of refused) {
  test(says, async () => {
    if (headers?.['X-API-KEY'] === 'KEYx') headers['X-API-KEY'] = `${node.key}x`
    const answer = await node.api(method, target, body, headers)
    assert.equal(answer.status, status, JSON.stringify(answer.json))
    assert.equal(answer.json.code, status)
    assert.match(answer.json.message, message)
    assert.match(answer.headers.get('content-type'), /^application\/json/)
    assert.doesNotMatch(answer.json.message, /\/proc|\/work|errno|\.space/)
    assert.equal((await Sandbox.list().nextItems()).length, 1)
  })
}

test('a full node says 429 with Retry-After, and makes nothing', async () => {
  const second = await Sandbox.create()
  const before = processesOf(node).length
  const answer = await node.api(...create())
  assert.equal(answer.status, 429)
  assert.equal(answer.json.code, 429)
  assert.match(answer.headers.get('retry-after'), /^\d+$/)
  assert.equal(processesOf(node).length, before)
  assert.equal((await Sandbox.list().nextItems()).length, 2)
  await second.kill()
  const third = await until('there is room again', () => Sandbox.create({ retries: 0 }).catch(() => null))
  await third.kill()
})

/* ---- requests to a sandbox ---- */

const envd = (id, port = '49983', more = {}) => ({ 'E2b-Sandbox-Id': id, 'E2b-Sandbox-Port': port, ...more })

const routed = [
  ['health needs no token', ['GET', '/health'], (id) => envd(id), 204],
  ['no token', ['POST', '/process.Process/List', '{}'], (id) => envd(id), 401],
  ['a wrong token', ['POST', '/process.Process/List', '{}'], (id) => envd(id, '49983', { 'X-Access-Token': 'x' }), 401],
  ['a sandbox that is not there', ['GET', '/health'], () => envd('inothing'), 502],
  ['only one of the two headers', ['GET', '/health'], (id) => ({ 'E2b-Sandbox-Id': id }), 400],
  ['a port that is none', ['GET', '/health'], (id) => envd(id, '70000'), 400],
  ['init is not for clients', ['POST', '/init', '{}'], (id) => envd(id), 404],
  ['nor is the platform\'s own', ['POST', '/space/init', '{}'], (id) => envd(id), 404],
]

for (const [says, [method, target, body], headers, status] of routed) {
  test(`routed: ${says}`, async () => {
    const answer = await fetch(node.url + target, { method, body, headers: { 'content-type': 'application/json', ...headers(sandbox.sandboxId) } })
    assert.equal(answer.status, status, await answer.text())
  })
}

/* ---- bytes that no client library sends ---- */

const head = 'Host: localhost\r\n'
const raw = [
  ['Content-Length and chunked', `POST /sandboxes HTTP/1.1\r\n${head}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['two different Content-Lengths', `POST /sandboxes HTTP/1.1\r\n${head}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc`],
  ['two Hosts', `GET /health HTTP/1.1\r\n${head}${head}\r\n`],
  ['a blank before the colon', `GET /health HTTP/1.1\r\n${head}X-A : b\r\n\r\n`],
  ['a folded line', `GET /health HTTP/1.1\r\n${head}X-A: b\r\n c\r\n\r\n`],
  ['NUL in a header', `GET /health HTTP/1.1\r\n${head}X-A: b\0c\r\n\r\n`],
  ['bare LF', `GET /health HTTP/1.1\n${head}\n\n`],
  ['a chunk size that is none', `POST /sandboxes HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n`],
  ['a TLS hello', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ['a header without end', `GET /health HTTP/1.1\r\nX-A: ${'a'.repeat(200_000)}`],
]

/** Sends the bytes, answers what came until the other side closed, or null after 5 s. */
function exchange(bytes) {
  return new Promise((resolve) => {
    const { hostname, port } = new URL(node.url)
    const socket = net.connect(Number(port), hostname, () => socket.write(Buffer.from(bytes, 'latin1')))
    let seen = ''
    socket.setTimeout(5000, () => { resolve(null); socket.destroy() })
    socket.on('data', (data) => { seen += data.toString('latin1') })
    socket.on('error', () => {})
    socket.on('close', () => resolve(seen))
  })
}

for (const [says, bytes] of raw) {
  test(`refused and closed: ${says}`, async () => {
    const answer = await exchange(bytes)
    assert.notEqual(answer, null, 'the connection stayed open')
    if (answer) assert.match(answer, /^HTTP\/1\.1 4\d\d /)
    assert.equal((await node.api('GET', '/health')).status, (await fetch(`${node.url}/health`)).status)
  })
}
