// A reporter for node's test runner: says what failed and what was skipped, and counts, last line.

function failure(data) {
  const error = data.details.error?.cause ?? data.details.error
  const text = (error?.stack ?? String(error)).split('\n').filter((line) => !/node_modules|node:internal/.test(line)).slice(0, 25).join('\n')
  return `FAILED ${data.name} (${Math.round(data.details.duration_ms)} ms)\n${text}\n`
}

export default async function* report(source) {
  let passed = 0
  let failed = 0
  let skipped = 0
  for await (const { type, data } of source) {
    if (type === 'test:stdout' || type === 'test:stderr') yield data.message
    if (type !== 'test:pass' && type !== 'test:fail') continue
    if (data.details?.type === 'suite') continue
    if (data.skip !== undefined) {
      skipped++
      yield `skipped: ${data.name}: ${data.skip}\n`
    } else if (type === 'test:pass') {
      passed++
      if (process.env.SPACE_TEST_VERBOSE) yield `ok ${data.name} (${Math.round(data.details.duration_ms)} ms)\n`
    } else {
      failed++
      yield failure(data)
    }
  }
  yield `${passed} passed, ${failed} failed, ${skipped} skipped\n`
}
