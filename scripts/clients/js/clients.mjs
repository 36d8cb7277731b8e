// What JavaScript programs do with InfluxDB's clients of versions 1, 2 and 3; each answer on a line of its own, as JSON, for
// test_javascript.py to read. Arguments: the server's URL and a token.
import {HttpError, InfluxDB, Point} from '@influxdata/influxdb-client'
import {BucketsAPI, DeleteAPI, HealthAPI, OrgsAPI, PingAPI, ReadyAPI, SetupAPI} from '@influxdata/influxdb-client-apis'
import {InfluxDBClient, Point as Point3} from '@influxdata/influxdb3-client'
import Influx from 'influx'

const [url, token] = process.argv.slice(2)
const say = (what, answer) => console.log(JSON.stringify({what, answer}))
// Without those that servers keep for themselves.
const own = (names) => names.filter((name) => !name.startsWith('_')).sort()

async function version2() {
  const influx = new InfluxDB({url, token})
  const api = influx.getWriteApi('any', 'plant', 'ms', {gzipThreshold: 1})
  for (let n = 0; n < 1000; n++) {
    api.writePoint(new Point('pump').tag('id', `a ${n % 3}`).intField('rpm', n).floatField('temp', n / 2).timestamp(n))
  }
  api.writePoint(new Point('note').stringField('text', 'x"y\\z').booleanField('on', true).timestamp(1))
  await api.close()
  say('health', (await new HealthAPI(influx).getHealth()).status)
  say('ready', (await new ReadyAPI(influx).getReady()).status)
  say('setup', (await new SetupAPI(influx).getSetup()).allowed)
  await new PingAPI(influx).getPing()
  const [org] = (await new OrgsAPI(influx).getOrgs({org: 'any'})).orgs
  const buckets = new BucketsAPI(influx)
  await buckets.postBuckets({body: {orgID: org.id, name: 'farm', retentionRules: []}})
  const found = (await buckets.getBuckets()).buckets
  say('buckets', own(found.map(({name}) => name)))
  await buckets.deleteBucketsID({bucketID: found.find(({name}) => name === 'farm').id})
  say('after', own((await buckets.getBuckets()).buckets.map(({name}) => name)))
  const body = {start: new Date(0).toISOString(), stop: new Date(99).toISOString(), predicate: '_measurement="pump"'}
  await new DeleteAPI(influx).postDelete({bucket: 'plant', org: 'any', body})
  await refused('flux', influx.getQueryApi('any').collectRows('from(bucket: "plant")'))
  const stranger = new InfluxDB({url, token: 'wrong'}).getWriteApi('any', 'plant', 'ns', {maxRetries: 0, writeFailed: () => Promise.resolve()})
  stranger.writeRecord('pump rpm=1i 1')
  await stranger.close()
  await refused('stranger', new BucketsAPI(new InfluxDB({url, token: 'wrong'})).getBuckets())
}

async function version3() {
  const client = new InfluxDBClient({host: url, token, database: 'plant'})
  try {
    await client.write(Point3.measurement('valve').setTag('id', 'a').setIntegerField('open', 7).setTimestamp(1000), 'plant', undefined, {precision: 'ms'})
    await client.write('valve,id=b open=8i 2000', 'plant', undefined, {precision: 'ms'})
    const rows = []
    for await (const row of client.query('SELECT id, open FROM valve ORDER BY id', 'plant')) rows.push([row.id, Number(row.open)])
    say('rows', rows)
    const bound = []
    const params = {id: 'b'}
    for await (const row of client.query('SELECT open FROM valve WHERE id = $id', 'plant', {type: 'sql', params})) bound.push(Number(row.open))
    say('bound', bound)
  } finally {
    await client.close()
  }
}

async function version1() {
  const {hostname: host, port, protocol} = new URL(url)
  const influx = new Influx.InfluxDB({host, port: Number(port), protocol: protocol.slice(0, -1), username: 'any', password: token, database: 'old'})
  await influx.createDatabase('old')
  say('databases', own(await influx.getDatabaseNames()))
  await influx.writePoints([{measurement: 'motor', tags: {id: 'a'}, fields: {amps: 1.5}, timestamp: new Date(1000)}])
  say('measurements', await influx.getMeasurements('old'))
  await influx.createDatabase('older')
  await influx.dropDatabase('older')
  say('left', own(await influx.getDatabaseNames()))
  say('ping', (await influx.ping(5000)).map(({online}) => online))
}

async function refused(what, asked) {
  try {
    await asked
    say(what, 'nothing was refused')
  } catch (error) {
    say(what, error instanceof HttpError ? error.statusCode : String(error))
  }
}

await version2()
await version3()
await version1()
