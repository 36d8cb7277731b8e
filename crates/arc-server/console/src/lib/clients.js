// The lines that other programs need to write to this server or read from it, each in the spelling of its language.

/** Writes a text for a shell. */
const sh = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
/** Writes a text for Python, JavaScript, Go and TOML, which agree on all that JSON has but what is beyond 16 bits. */
const quoted = (text) => JSON.stringify(text);
/** TOML of Telegraf takes what looks like a variable for one. */
const toml = (text) => quoted(text).replaceAll("$", "$$$$");
const java = (text) => quoted(text);

/** Writes the command that makes a branch of a data directory: of a state that stays, `""` for now. */
export function branchCommand(state) {
  const moment = state.startsWith("@") ? ` --snapshot ${sh(state.slice(1))}` : state ? ` --at ${sh(state)}` : "";
  return `arc-server branch --data-dir ./arc-data --to ./arc-branch${moment}`;
}

/** Returns `{ name, text, hint }` for each program; the token is a variable of the environment, `ARC_TOKEN`. */
export function clients({ url, database, open }) {
  const { protocol, hostname, port, pathname } = new URL(url);
  const secure = protocol === "https:";
  const portNumber = Number(port || (secure ? 443 : 80));
  const host = `${hostname}:${portNumber}`;
  const flight = `${secure ? "grpc+tls" : "grpc"}://${host}`;
  const behindPrefix = pathname.length > 1 ? " Arrow Flight has no paths: it needs the address of the server itself, not that of a proxy with a prefix." : "";
  const at = { url, database, open, secure, hostname, portNumber, host, flight, behindPrefix, db: encodeURIComponent(database) };
  return [curl(at), telegraf(at), arcPython(at), adbc(at), influx2Python(at), influx3Python(at), javascript(at), go(at), jdbc(at), grafana(at), prometheus(at)];
}

const env = (open, text, none = '"none"') => (open ? none : text);

function curl({ url, db, open }) {
  const auth = open ? "" : ` -H "Authorization: Bearer $ARC_TOKEN"`;
  return {
    name: "curl",
    text: `curl${auth} ${sh(`${url}/write?db=${db}`)} --data-binary 'pump,id=7 rpm=1450i'\ncurl${auth} ${sh(`${url}/api/v1/query?db=${db}&format=pretty`)} -d '{"sql": "SELECT * FROM pump"}'\n`,
    hint: "Line protocol in, SQL out.",
  };
}

function telegraf({ url, database, open }) {
  return {
    name: "Telegraf",
    text: `[[inputs.cpu]]\n[[inputs.mem]]\n\n[[outputs.influxdb_v2]]\n  urls = [${quoted(url)}]\n  token = ${env(open, '"${ARC_TOKEN}"')}\n  organization = "any"\n  bucket = ${toml(database)}\n`,
    hint: "telegraf.conf; then telegraf --config telegraf.conf",
  };
}

function arcPython({ hostname, portNumber, secure, database, open }) {
  return {
    name: "Python: arc-tsdb-client",
    text: `${open ? "" : "import os\n\n"}from arc_client import ArcClient\n\nwith ArcClient(host=${quoted(hostname)}, port=${portNumber}${secure ? ", ssl=True" : ""}, token=${env(open, 'os.environ["ARC_TOKEN"]')}, database=${quoted(database)}) as client:\n    client.write.write_records([{"measurement": "pump", "tags": {"id": "7"}, "fields": {"rpm": 1450}}])\n    print(client.query.query("SELECT * FROM pump").data)\n`,
    hint: "pip install arc-tsdb-client",
  };
}

function adbc({ flight, database, open, behindPrefix }) {
  return {
    name: "Python: ADBC (Arrow Flight)",
    text: `${open ? "" : "import os\n\n"}import adbc_driver_flightsql.dbapi as flight_sql\n\nlogin = {\n${open ? "" : '    "adbc.flight.sql.authorization_header": f"Bearer {os.environ[\'ARC_TOKEN\']}",\n'}    "adbc.flight.sql.rpc.call_header.database": ${quoted(database)},\n}\nwith flight_sql.connect(${quoted(flight)}, db_kwargs=login, autocommit=True) as connection, connection.cursor() as cursor:\n    cursor.execute("SELECT * FROM pump")\n    print(cursor.fetch_arrow_table())\n`,
    hint: `pip install adbc-driver-flightsql adbc-driver-manager pyarrow.${behindPrefix}`,
  };
}

function influx2Python({ url, database, open }) {
  return {
    name: "Python: influxdb-client",
    text: `${open ? "" : "import os\n\n"}from influxdb_client import InfluxDBClient, Point\nfrom influxdb_client.client.write_api import SYNCHRONOUS\n\nwith InfluxDBClient(${quoted(url)}, token=${env(open, 'os.environ["ARC_TOKEN"]')}, org="any") as client:\n    with client.write_api(write_options=SYNCHRONOUS) as writer:\n        writer.write(${quoted(database)}, record=Point("pump").tag("id", "7").field("rpm", 1450))\n`,
    hint: "pip install influxdb-client. It writes; it asks in Flux, which is not spoken here.",
  };
}

function influx3Python({ url, database, open, behindPrefix }) {
  return {
    name: "Python: influxdb3-python",
    text: `${open ? "" : "import os\n\n"}from influxdb_client_3 import InfluxDBClient3, Point\n\nwith InfluxDBClient3(host=${quoted(url)}, token=${env(open, 'os.environ["ARC_TOKEN"]')}, database=${quoted(database)}) as client:\n    client.write(Point("pump").tag("id", "7").field("rpm", 1450))\n    print(client.query("SELECT * FROM pump").to_pandas())\n`,
    hint: `pip install influxdb3-python pandas.${behindPrefix}`,
  };
}

function javascript({ url, database, open }) {
  return {
    name: "JavaScript",
    text: `import { InfluxDBClient } from "@influxdata/influxdb3-client";\n\nconst client = new InfluxDBClient({ host: ${quoted(url)}, token: ${env(open, "process.env.ARC_TOKEN")}, database: ${quoted(database)} });\nawait client.write("pump,id=7 rpm=1450i");\nfor await (const row of client.query("SELECT * FROM pump")) console.log(row);\nawait client.close();\n`,
    hint: "npm install @influxdata/influxdb3-client",
  };
}

function go({ url, database, open }) {
  return {
    name: "Go",
    text: `package main\n\nimport (\n\t"context"\n\t"fmt"\n\t"log"\n${open ? "" : '\t"os"\n'}\n\t"github.com/InfluxCommunity/influxdb3-go/v2/influxdb3"\n)\n\nfunc main() {\n\ttoken := ${env(open, 'os.Getenv("ARC_TOKEN")')}\n\tclient, err := influxdb3.New(influxdb3.ClientConfig{Host: ${quoted(url)}, Token: token, Database: ${quoted(database)}})\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tdefer client.Close()\n\tif err := client.Write(context.Background(), []byte("pump,id=7 rpm=1450i")); err != nil {\n\t\tlog.Fatal(err)\n\t}\n\trows, err := client.Query(context.Background(), "SELECT * FROM pump")\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tfor rows.Next() {\n\t\tfmt.Println(rows.Value())\n\t}\n}\n`,
    hint: "go get github.com/InfluxCommunity/influxdb3-go/v2/influxdb3",
  };
}

function jdbc({ host, db, secure, open, behindPrefix }) {
  const address = `jdbc:arrow-flight-sql://${host}/?useEncryption=${secure}&database=${db}`;
  return {
    name: "Java: JDBC",
    text: `String url = ${java(address)}${open ? "" : ' + "&token=" + System.getenv("ARC_TOKEN")'};\ntry (var connection = DriverManager.getConnection(url); var statement = connection.createStatement()) {\n    var rows = statement.executeQuery("SELECT * FROM pump");\n    while (rows.next()) System.out.println(rows.getString(1));\n}\n`,
    hint: `The driver is org.apache.arrow:flight-sql-jdbc-driver; java --add-opens=java.base/java.nio=ALL-UNNAMED.${behindPrefix}`,
  };
}

function grafana({ host, database, secure, open, behindPrefix }) {
  return {
    name: "Grafana",
    text: `Data source:      FlightSQL\nHost:Port:        ${host}\nAuth Type:        ${open ? "none" : "token"}\n${open ? "" : "Token:            what ARC_TOKEN has\n"}Require TLS/SSL:  ${secure ? "on" : "off"}\nMetaData:         database = ${database}\n`,
    hint: `The fields of the data source FlightSQL (influxdata-flightsql-datasource).${behindPrefix}`,
  };
}

function prometheus({ host, secure, open }) {
  return {
    name: "Prometheus",
    text: `scrape_configs:\n  - job_name: arc\n    scheme: ${secure ? "https" : "http"}\n${open ? "" : "    authorization:\n      credentials_file: /etc/prometheus/arc.token\n"}    static_configs:\n      - targets: [${quoted(host)}]\n`,
    hint: "What the server counts of itself, from /metrics.",
  };
}
