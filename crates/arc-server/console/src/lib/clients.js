// The lines that other programs need to write to this server or read from it.

/** Returns `{ name, text, hint }` for each program; `TOKEN` stands for a token. */
export function clients({ url, database, open }) {
  const auth = open ? "" : " -H 'Authorization: Bearer TOKEN'";
  const token = open ? "none" : "TOKEN";
  const host = url.replace(/^https?:\/\//, "");
  const scheme = url.startsWith("https") ? "grpc+tls" : "grpc";
  const query = encodeURIComponent(database);
  return [
    {
      name: "curl",
      text: `curl${auth} '${url}/write?db=${query}' --data-binary 'pump,id=7 rpm=1450i'\ncurl${auth} '${url}/api/v1/query?db=${query}&format=pretty' -d '{"sql": "SELECT * FROM pump"}'`,
      hint: "Line protocol in, SQL out.",
    },
    {
      name: "Telegraf",
      text: `[[outputs.influxdb_v2]]\n  urls = ["${url}"]\n  token = "${token}"\n  organization = "any"\n  bucket = "${database}"\n`,
      hint: "Goes into telegraf.conf.",
    },
    {
      name: "Python (ADBC, Arrow Flight)",
      text: `import adbc_driver_flightsql.dbapi as flight_sql\n\noptions = {"adbc.flight.sql.rpc.call_header.database": "${database}"${open ? "" : ', "adbc.flight.sql.authorization_header": "Bearer TOKEN"'}}\nwith flight_sql.connect("${scheme}://${host}", db_kwargs=options) as connection, connection.cursor() as cursor:\n    cursor.execute("SELECT * FROM pump")\n    print(cursor.fetch_arrow_table())\n`,
      hint: "pip install adbc-driver-flightsql pyarrow",
    },
    {
      name: "Python (influxdb-client)",
      text: `from influxdb_client import InfluxDBClient, WriteOptions\n\nwith InfluxDBClient(url="${url}", token="${token}", org="any") as client:\n    with client.write_api(write_options=WriteOptions(batch_size=5000)) as write:\n        write.write(bucket="${database}", record="pump,id=7 rpm=1450i")\n`,
      hint: "pip install influxdb-client",
    },
    {
      name: "JavaScript",
      text: `import { InfluxDB, Point } from "@influxdata/influxdb-client";\n\nconst write = new InfluxDB({ url: "${url}", token: "${token}" }).getWriteApi("any", "${database}");\nwrite.writePoint(new Point("pump").tag("id", "7").intField("rpm", 1450));\nawait write.close();\n`,
      hint: "npm install @influxdata/influxdb-client",
    },
    {
      name: "Go",
      text: `client := influxdb2.NewClient("${url}", "${token}")\ndefer client.Close()\nwrite := client.WriteAPIBlocking("any", "${database}")\nerr := write.WriteRecord(context.Background(), "pump,id=7 rpm=1450i")\n`,
      hint: "go get github.com/influxdata/influxdb-client-go/v2",
    },
    {
      name: "Grafana",
      text: `Data source: FlightSQL\nHost:        ${host}\nAuth:        ${open ? "none" : "token"}${open ? "" : "\nToken:       TOKEN"}\nMetadata:    database = ${database}\n`,
      hint: "The data source FlightSQL; docs/clients.md has more.",
    },
  ];
}
