// Reads the same bytes with wire/http1 (through http1-dump) and with Node's parser, which is the other
// well-known strict one. What both accept they must understand alike; what we accept Node must accept;
// what only Node accepts is listed here with the reason why we do not.
//
//   node compare.js PATH-OF-http1-dump
'use strict'
const http = require('node:http')
const net = require('node:net')
const { spawnSync } = require('node:child_process')

const H = 'Host: a\r\n'
const GET = 'GET / HTTP/1.1\r\n' + H
const POST = 'POST / HTTP/1.1\r\n' + H
const CHUNKED = POST + 'Transfer-Encoding: chunked\r\n\r\n'

// says, bytes (latin1), and for what only Node accepts (or only older ones): why we refuse.
const cases = [
  ['simple', GET + '\r\n'],
  ['query', 'GET /a?b=c&d=%20 HTTP/1.1\r\n' + H + '\r\n'],
  ['path with dots and percent', 'GET //a/../%2e HTTP/1.1\r\n' + H + '\r\n'],
  ['odd target characters', 'GET /"<>\\^`{|} HTTP/1.1\r\n' + H + '\r\n'],
  ['OPTIONS *', 'OPTIONS * HTTP/1.1\r\n' + H + '\r\n'],
  ['HTTP/1.0', 'GET / HTTP/1.0\r\n\r\n'],
  ['HTTP/1.0 with more behind', 'GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n'],
  ['HTTP/1.0 keep-alive', 'GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /2 HTTP/1.0\r\n\r\n'],
  ['two requests', GET + '\r\n' + POST + 'Content-Length: 2\r\n\r\nhi'],
  ['close, then more', GET + 'Connection: close\r\n\r\n' + GET + '\r\n'],
  ['value with blanks around', GET + 'X:  \t a b \t\r\n\r\n'],
  ['empty value', GET + 'X:\r\nY: \r\n\r\n'],
  ['8-bit value', GET + 'X: \xc3\xa9\xff\r\n\r\n'],
  ['tab in a value', GET + 'X: a\tb\r\n\r\n'],
  ['colon in a value', GET + 'X: a:b: c\r\n\r\n'],
  ['same name twice', GET + 'X: 1\r\nx: 2\r\n\r\n'],
  ['all token characters', GET + "!#$%&'*+-.^_`|~09AZaz: 1\r\n\r\n"],
  ['length', POST + 'Content-Length: 5\r\n\r\nhello'],
  ['length 0', POST + 'Content-Length: 0\r\n\r\n'],
  ['GET with a body', 'GET / HTTP/1.1\r\n' + H + 'Content-Length: 2\r\n\r\nhi'],
  ['chunked', CHUNKED + '5\r\nhello\r\n1;a=b\r\n!\r\n0\r\n\r\n'],
  ['chunked, quoted extension', CHUNKED + '1;a="b;\\"c"\r\nx\r\n0\r\n\r\n'],
  ['chunked, trailers', CHUNKED + '1\r\nx\r\n0\r\nX-T: 1\r\n\r\n'],
  ['chunked, leading zeros', CHUNKED + '0001\r\nx\r\n000\r\n\r\n'],
  ['chunked, then another', CHUNKED + '1\r\nx\r\n0\r\n\r\n' + GET + '\r\n'],
  ['continue', POST + 'Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi'],

  ['no Host', 'GET / HTTP/1.1\r\n\r\n', 'RFC 9112 3.2: it must be refused; Node 18 does not'],
  ['bare LF', 'GET / HTTP/1.1\nHost: a\n\n'],
  ['bare LF after one field', GET + 'X: 1\n\r\n'],
  ['bare CR in a value', GET + 'X: a\rY: b\r\n\r\n'],
  ['CR CR LF', GET + 'X: a\r\r\n\r\n'],
  ['NUL in a value', GET + 'X: a\0b\r\n\r\n'],
  ['control in a value', GET + 'X: a\x01b\r\n\r\n'],
  ['blank before the colon', GET + 'X : a\r\n\r\n', 'RFC 9112 5.1: it must be refused; Node 18 does not'],
  ['no name', GET + ': a\r\n\r\n', 'RFC 9110 5.1: a name is not empty; Node 18 takes it'],
  ['no colon', GET + 'X\r\n\r\n'],
  ['name in parentheses', GET + '(X): a\r\n\r\n'],
  ['8-bit name', GET + 'X\xa0: a\r\n\r\n'],
  ['fold', GET + 'X: a\r\n b\r\n\r\n'],
  ['folded first field', 'GET / HTTP/1.1\r\n Host: a\r\n\r\n',
    'RFC 9112 2.2: to be refused, or skipped, which readers do differently; Node 18 takes it'],
  ['length and chunked', POST + 'Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ['chunked and length', POST + 'Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n'],
  ['two equal lengths', POST + 'Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi'],
  ['list of lengths', POST + 'Content-Length: 2, 2\r\n\r\nhi'],
  ['+2', POST + 'Content-Length: +2\r\n\r\nhi'],
  ['0x2', POST + 'Content-Length: 0x2\r\n\r\nhi'],
  ['length 2^64 + 2', POST + 'Content-Length: 18446744073709551618\r\n\r\nhi'],
  ['gzip, chunked', POST + 'Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
    'another coding would have to be undone by whoever judges the body'],
  ['chunked, gzip', POST + 'Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n'],
  ['xchunked', POST + 'Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n'],
  ['identity', POST + 'Transfer-Encoding: identity\r\n\r\n'],
  ['TE twice', POST + 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'two codings: one reader undoes chunking once, another twice'],
  ['Chunked', POST + 'Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n',
    'one spelling; no client writes another'],
  ['TE with vertical tab', POST + 'Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n'],
  ['TE in HTTP/1.0', 'POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'RFC 9112 6.1: framing is faulty; a 1.0 hop reads until the close instead'],
  ['chunk size with a blank', CHUNKED + '1 \r\nx\r\n0\r\n\r\n',
    'RFC 9112 7.1 has no blank there; readers differ'],
  ['chunk size 0x1', CHUNKED + '0x1\r\nx\r\n0\r\n\r\n'],
  ['chunk size 2^64 + 1', CHUNKED + '10000000000000001\r\nx\r\n0\r\n\r\n'],
  ['chunk with bare LF', CHUNKED + '1\nx\n0\n\n'],
  ['LF in a chunk extension', CHUNKED + '1;a\nx\r\n0\r\n\r\n'],
  ['empty chunk extension', CHUNKED + '1;\r\nx\r\n0\r\n\r\n',
    'an extension has a name (RFC 9112 7.1.1)'],
  ['blank in a chunk extension', CHUNKED + '1; a\r\nx\r\n0\r\n\r\n',
    'blanks there are "bad" in RFC 9112 7.1.1 and no client of ours writes them'],
  ['chunk data too long', CHUNKED + '1\r\nxy\r\n0\r\n\r\n'],
  ['control in a trailer', CHUNKED + '0\r\nX: \x01\r\n\r\n'],
  ['leading CRLF', '\r\n' + GET + '\r\n',
    'bytes left over from another message; a client of today sends none'],
  ['HTTP/0.9', 'GET /\r\n\r\n', 'a version is part of a request line; an answer would have no head'],
  ['HTTP/1.2', 'GET / HTTP/1.2\r\n' + H + '\r\n'],
  ['HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['lower-case version', 'GET / http/1.1\r\n' + H + '\r\n'],
  ['two blanks', 'GET  / HTTP/1.1\r\n' + H + '\r\n',
    'RFC 9112 3: single SP; elsewhere the second blank begins the target'],
  ['blank in the target', 'GET /a b HTTP/1.1\r\n' + H + '\r\n'],
  ['tab for a blank', 'GET\t/ HTTP/1.1\r\n' + H + '\r\n'],
  ['odd method', 'G@T / HTTP/1.1\r\n' + H + '\r\n'],
  ['absolute form', 'GET http://b/ HTTP/1.1\r\n' + H + '\r\n',
    'its name may differ from Host: two names for one request'],
  ['authority form', 'GET b:80 HTTP/1.1\r\n' + H + '\r\n',
    'only for CONNECT, which is not served'],
  ['relative target', 'GET a HTTP/1.1\r\n' + H + '\r\n'],
  ['* with GET', 'GET * HTTP/1.1\r\n' + H + '\r\n', 'only for OPTIONS (RFC 9112 3.2.4)'],
  ['fragment', 'GET /a#b HTTP/1.1\r\n' + H + '\r\n',
    'not part of a request target; one reader cuts it, another judges it'],
  ['8-bit target', 'GET /\xc3\xa9 HTTP/1.1\r\n' + H + '\r\n',
    'must be percent-encoded; otherwise its encoding is a guess'],
  ['two Hosts', GET + 'Host: b\r\n\r\n', 'RFC 9112 3.2: 400; which one counts differs'],
  ['empty Host', 'GET / HTTP/1.1\r\nHost:\r\n\r\n', 'routes nowhere'],
  ['Host with a user', 'GET / HTTP/1.1\r\nHost: a@b\r\n\r\n', 'readers differ in what the name is'],
  ['Host with a path', 'GET / HTTP/1.1\r\nHost: a/b\r\n\r\n', 'the same'],
  ['Host with percent', 'GET / HTTP/1.1\r\nHost: a%2eb\r\n\r\n', 'one canonical form of a name'],
  ['Host with a trailing dot', 'GET / HTTP/1.1\r\nHost: a.\r\n\r\n', 'one canonical form of a name'],
  ['Host list', 'GET / HTTP/1.1\r\nHost: a, b\r\n\r\n', 'two names'],
  ['other expectation', POST + 'Expect: 200-ok\r\nContent-Length: 0\r\n\r\n'],
  ['too many fields', GET + 'X: 1\r\n'.repeat(100) + '\r\n',
    'HTTP1_FIELDS_MAX; Node takes up to 2000 lines'],
  ['Connection with an empty item', GET + 'Connection: a,,b\r\n\r\n',
    'may only be written by a broken client; nothing is repaired'],
]

const hex = (s) => Buffer.from(s, 'latin1').toString('hex')

function ours(dump, raw) {
  const r = spawnSync(dump, { input: raw })
  if (r.status !== 0) throw new Error(`http1-dump ended with ${r.status ?? r.signal}: ${r.stderr}`)
  return JSON.parse(r.stdout)
}

// What Node's server saw on one connection: the requests that came to their end, and whether it
// answered an error of its own.
function nodes(raw) {
  return new Promise((resolve, reject) => {
    const requests = []
    const server = http.createServer((req, res) => {
      const body = []
      const fields = []
      for (let i = 0; i < req.rawHeaders.length; i += 2)
        fields.push([hex(req.rawHeaders[i]), hex(req.rawHeaders[i + 1])])
      const seen = { method: hex(req.method), target: hex(req.url), fields, body: '', whole: false }
      requests.push(seen)
      req.on('data', (d) => body.push(d))
      req.on('error', () => {})
      req.on('end', () => {
        seen.body = Buffer.concat(body).toString('hex')
        seen.whole = true
        res.end()
      })
    })
    server.listen(0, '127.0.0.1', () => {
      const c = net.connect(server.address().port, '127.0.0.1', () => c.end(raw))
      let answer = ''
      c.on('data', (d) => { answer += d.toString('latin1') })
      c.on('error', () => {})
      c.setTimeout(10000, () => reject(new Error('node gave no answer in 10 s')))
      c.on('close', () => {
        server.closeAllConnections()
        server.close(() => resolve({
          requests: requests.filter((r) => r.whole),
          refused: /^HTTP\/1\.1 [45]/m.test(answer) || requests.some((r) => !r.whole) || answer === '',
        }))
      })
    })
  })
}

function judge(a, b, why) {
  const accepted = a.end === 'done' || a.end === 'close'
  const strip = (r) => ({ method: r.method, target: r.target, fields: r.fields, body: r.body })
  // Behind a last request we read nothing; Node reads on, to complain.
  if (a.end === 'done' && b.refused) return 'we accept what Node refuses'
  if (accepted && why) return 'listed as stricter, but we accept it'
  if (!accepted && !b.refused && !why) return `we refuse (${a.end}) what Node accepts, and no reason is given`
  if (accepted && JSON.stringify(a.requests) !== JSON.stringify(b.requests.map(strip)))
    return `read differently:\n  we:   ${JSON.stringify(a.requests)}\n  node: ${JSON.stringify(b.requests.map(strip))}`
  return null
}

async function main() {
  let passed = 0
  let failed = 0
  let stricter = 0
  for (const [says, text, why] of cases) {
    const raw = Buffer.from(text, 'latin1')
    const b = await nodes(raw)
    const a = ours(process.argv[2], raw)
    const wrong = judge(a, b, why)
    if (process.env.VERBOSE) console.log(`${says}: we ${a.end}, node ${b.refused ? 'refuses' : 'accepts'}`)
    if (wrong) console.log(`${says}: ${wrong}`)
    if (!wrong && why && !b.refused) stricter++
    wrong ? failed++ : passed++
  }
  console.log(`stricter than Node ${process.version} in ${stricter} of ${cases.length} cases`)
  console.log(`${passed} passed, ${failed} failed`)
  process.exitCode = failed ? 1 : 0
}

main()
