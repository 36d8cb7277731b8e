"""curl as InfluxDB's own documentation uses it, of versions 1, 2 and 3: the same requests, with names and points of our own.

Each line is run by a shell as a reader would run it, with `$URL` and `$TOKEN`; what it answers must have the status and the text.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Server

VERSION_1 = [
    (r"""curl -i -XPOST "$URL/query" -u "any:$TOKEN" --data-urlencode "q=CREATE DATABASE plant" """, 200, '"statement_id":0'),
    (r"""curl -i -XPOST "$URL/query?u=any&p=$TOKEN" --data-urlencode "q=CREATE DATABASE \"two words\"" """, 200, "results"),
    (r"""curl -G "$URL/query?pretty=true" -u "any:$TOKEN" --data-urlencode "q=SHOW DATABASES" """, 200, '"plant"'),
    (r"""curl -i -XPOST "$URL/write?db=plant" -u "any:$TOKEN" --data-binary 'pump,id=a,site=eu rpm=0.64 1700000000000000000'""", 204, ""),
    (r"""curl -i -XPOST "$URL/write?db=plant&u=any&p=$TOKEN" --data-binary 'pump,id=b rpm=0.67
pump,id=b,site=eu rpm=0.55 1700000000000000001
pump,direction=in,id=a,site=eu rpm=2.0 1700000000000000001'""", 204, ""),
    (r"""printf 'pump,id=c rpm=1 17\npump,id=d rpm=2 18\n' > points.txt
curl -i -XPOST "$URL/write?db=plant&precision=s&rp=autogen&consistency=one" -H "Authorization: Token $TOKEN" --data-binary @points.txt""", 204, ""),
    (r"""gzip -kf points.txt && curl -i -XPOST "$URL/write?db=plant&precision=ms" -H "Authorization: Token any:$TOKEN" -H "Content-Encoding: gzip" --data-binary @points.txt.gz""", 401, "Invalid or expired token"),
    (r"""curl -i -XPOST "$URL/write?db=plant&precision=ms" -H "Authorization: Token $TOKEN" -H "Content-Encoding: gzip" --data-binary @points.txt.gz""", 204, ""),
    (r"""curl -i -XPOST "$URL/write?db=plant" -u "any:$TOKEN" --data-binary 'pump,id=a rpm=booo'""", 400, "partial write: 1 of 1 lines rejected"),
    (r"""curl -i -XPOST "$URL/write?db=plant" --data-binary 'pump rpm=1'""", 401, "Authentication required"),
    (r"""curl -sl -I "$URL/ping" """, 204, "(?i)x-influxdb-version: 1.8"),
    (r"""curl "$URL/ping?verbose=true" """, 200, '"version":"1.8'),
    (r"""curl -XGET "$URL/health" """, 200, '"status":"pass"'),
    (r"""curl "$URL/debug/vars" -u "any:$TOKEN" """, 200, "{"),
    (r"""curl -G "$URL/query?pretty=true" -u "any:$TOKEN" --data-urlencode "db=plant" --data-urlencode "q=SHOW MEASUREMENTS" """, 200, r'\[\["pump"\]\]'),
    (r"""curl -G "$URL/query" -u "any:$TOKEN" --data-urlencode "q=SHOW RETENTION POLICIES ON plant" """, 200, '"autogen"'),
    (r"""curl -i -XPOST "$URL/query" -u "any:$TOKEN" --data-urlencode "q=DROP DATABASE \"two words\"" """, 200, '"statement_id":0'),
    # InfluxQL reads no points here, and says what does.
    (r"""curl -G "$URL/query" -u "any:$TOKEN" --data-urlencode "db=plant" --data-urlencode "q=SELECT * FROM pump" """, 400, "use SQL at /api/v1/query"),
    (r"""curl "$URL/api/v1/query?db=plant" -u "any:$TOKEN" -d '{"sql": "SELECT count(*) AS n FROM pump"}'""", 200, r'"data":\[\[8\]\]'),
]

VERSION_2 = [
    (r"""curl --request POST "$URL/api/v2/buckets" --header "Authorization: Token $TOKEN" --header "Content-Type: application/json" \
  --data '{"orgID": "0000000000000001", "name": "plant", "retentionRules": [{"type": "expire", "everySeconds": 8640000000, "shardGroupDurationSeconds": 0}]}'""", 201, '"name":"plant"'),
    (r"""curl --request POST "$URL/api/v2/buckets" --header "Authorization: Token $TOKEN" --data '{"name": "farm"}'""", 201, '"retentionRules":\\[\\]'),
    (r"""curl --request POST "$URL/api/v2/write?org=any&bucket=plant&precision=ns" --header "Authorization: Token $TOKEN" \
  --header "Content-Type: text/plain; charset=utf-8" --header "Accept: application/json" --data-binary '
    pump,id=a rpm=73.9,flow=1i 1700000000000000000
    pump,id=b rpm=73.4,flow=2i 1700000000000000001
    '""", 204, ""),
    (r"""echo 'pump,id=c rpm=7 1700000002' | gzip > points.gz
curl --request POST "$URL/api/v2/write?org=any&bucket=plant&precision=s" --header "Authorization: Token $TOKEN" \
  --header "Content-Encoding: gzip" --header "Content-Type: text/plain; charset=utf-8" --data-binary @points.gz""", 204, ""),
    (r"""curl --request POST "$URL/api/v2/write?org=any&bucket=plant&precision=h" --header "Authorization: Token $TOKEN" --data-raw "pump rpm=" """, 400, '"code":"invalid"'),
    (r"""curl --request POST "$URL/api/v2/write?org=any&bucket=plant" --header "Authorization: Token wrong" --data-raw "pump rpm=1" """, 401, '"code":"unauthorized"'),
    (r"""curl "$URL/ping" --include""", 204, "(?i)x-influxdb-version"),
    (r"""curl "$URL/health" """, 200, '"status":"pass"'),
    (r"""curl "$URL/api/v2/ready" """, 200, '"status":"ready"'),
    (r"""curl "$URL/api/v2/setup" """, 200, '"allowed":false'),
    (r"""curl --request GET "$URL/api/v2/orgs?org=any" --header "Authorization: Token $TOKEN" """, 200, '"name":"any"'),
    (r"""curl "$URL/api/v2/me" --header "Authorization: Token $TOKEN" """, 200, '"name":"admin"'),
    (r"""curl --request GET "$URL/api/v2/buckets?name=plant" --header "Authorization: Token $TOKEN" """, 200, '"everySeconds":8640000000'),
    (r"""curl --request POST "$URL/api/v2/delete?org=any&bucket=plant" --header "Authorization: Token $TOKEN" --header "Content-Type: application/json" \
  --data '{"start": "2020-01-01T00:00:00Z", "stop": "2030-01-01T00:00:00Z", "predicate": "_measurement=\"pump\" AND id=\"a\""}'""", 204, ""),
    (r"""id=$(curl "$URL/api/v2/buckets?name=farm" -H "Authorization: Token $TOKEN" -w '' | grep -o '"id":"[0-9a-f]*"' | cut -d'"' -f4)
curl --request DELETE "$URL/api/v2/buckets/$id" --header "Authorization: Token $TOKEN" """, 204, ""),
    # Nor is Flux spoken here.
    (r"""curl --request POST "$URL/api/v2/query?org=any" --header "Authorization: Token $TOKEN" --header "Content-Type: application/vnd.flux" \
  --data 'from(bucket: "plant") |> range(start: -1h)'""", 404, "Cannot POST /api/v2/query"),
    (r"""curl "$URL/api/v1/query?db=plant" -H "Authorization: Token $TOKEN" -d '{"sql": "SELECT id FROM pump ORDER BY id"}'""", 200, r'\[\["b"\],\["c"\]\]'),
]

VERSION_3 = [
    (r"""curl "$URL/health" --header "Authorization: Bearer $TOKEN" """, 200, "pass"),
    (r"""curl "$URL/ping" --header "Authorization: Bearer $TOKEN" """, 204, ""),
    (r"""curl "$URL/api/v3/configure/database" --header "Authorization: Bearer $TOKEN" --header "Content-Type: application/json" --data '{"db": "plant"}'""", 200, ""),
    (r"""curl "$URL/api/v3/write_lp?db=plant&precision=auto" --header "Authorization: Bearer $TOKEN" \
  --data-raw "pump,site=East rpm=72.0
 pump,site=West\ end rpm=71.5" """, 204, ""),
    (r"""curl "$URL/api/v3/write_lp?db=plant&precision=second&no_sync=true" --header "Authorization: Bearer $TOKEN" --data-raw 'pump,site=North rpm=7 1700000000'""", 204, ""),
    (r"""curl "$URL/api/v3/write_lp?db=plant&accept_partial=true" --header "Authorization: Bearer $TOKEN" --data-raw 'pump,site=South rpm=8
pump,site=South rpm=high'""", 400, "partial write of line protocol occurred"),
    (r"""curl "$URL/write?db=plant&precision=s" --user "":"$TOKEN" --header "Content-type: text/plain; charset=utf-8" --data-binary 'valve,id=a open=72 1700000000'""", 204, ""),
    (r"""curl -G "$URL/api/v3/query_sql" --header "Authorization: Bearer $TOKEN" --data-urlencode "db=plant" \
  --data-urlencode "q=SELECT site, rpm FROM pump WHERE site='West end'" --data-urlencode "format=jsonl" """, 200, r'^\{"site":"West end","rpm":71.5\}'),
    (r"""curl "$URL/api/v3/query_sql" --header "Authorization: Bearer $TOKEN" --header "Content-Type: application/json" \
  --data '{"db": "plant", "q": "SELECT count(*) AS n FROM pump WHERE rpm > $least", "params": {"least": 71}, "format": "json"}'""", 200, r'\[\{"n":2\}\]'),
    (r"""curl "$URL/api/v3/query_sql" --header "Authorization: Bearer $TOKEN" --header "Accept: text/csv" -G --data-urlencode "db=plant" \
  --data-urlencode "q=SELECT open FROM valve" """, 200, "^open\n72"),
    (r"""curl "$URL/api/v3/configure/table" --header "Authorization: Bearer $TOKEN" --header "Content-Type: application/json" \
  --data '{"db": "plant", "table": "motor", "tags": ["id"], "fields": [{"name": "amps", "type": "float64"}]}'""", 200, ""),
    (r"""curl "$URL/api/v3/configure/database?format=json" --header "Authorization: Bearer $TOKEN" """, 200, '"plant"'),
    (r"""curl -X POST "$URL/api/v3/configure/token/named_admin" --header "Authorization: Bearer $TOKEN" --header "Content-Type: application/json" --data '{"token_name": "second"}'""", 201, '"token":"'),
    (r"""curl -X POST "$URL/api/v3/enterprise/configure/token" --header "Authorization: Bearer $TOKEN" --header "Content-Type: application/json" \
  --data '{"token_name": "reader", "permissions": [{"resource_type": "db", "resource_identifier": ["plant"], "actions": ["read"]}]}'""", 201, '"token":"'),
    (r"""curl -X DELETE "$URL/api/v3/configure/token?token_name=second" --header "Authorization: Bearer $TOKEN" """, 200, ""),
    (r"""curl --request DELETE "$URL/api/v3/configure/table?db=plant&table=motor" --header "Authorization: Bearer $TOKEN" """, 200, ""),
    (r"""curl --request DELETE "$URL/api/v3/configure/database?db=plant" --header "Authorization: Bearer $TOKEN" """, 200, ""),
    # Whoever has no token gets none: the first start has made one.
    (r"""curl -X POST "$URL/api/v3/configure/token/admin" """, 401, "Authentication required"),
]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl cannot be found")
@pytest.mark.parametrize("lines", [VERSION_1, VERSION_2, VERSION_3], ids=["version 1", "version 2", "version 3"])
def test_lines_of_the_documentation_are_answered(closed: Server, tmp_path: Path, lines: list[tuple[str, int, str]]) -> None:
    # What a reader sees, and after it the status.
    (tmp_path / ".curlrc").write_text('silent\nmax-time = 60\nwrite-out = "\\n%{http_code}"\n')
    env = {**os.environ, "CURL_HOME": str(tmp_path), "URL": closed.url, "TOKEN": closed.token}
    for line, status, text in lines:
        ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, cwd=tmp_path, env=env)
        answer, _, found = ran.stdout.rpartition("\n")
        assert (found, ran.returncode) == (str(status), 0), f"{line}\n{ran.stdout}{ran.stderr}"
        assert re.search(text, answer), f"{line}\n{answer}"
