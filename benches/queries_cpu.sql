-- Ten questions about the host metrics of host_metrics.py, in SQL that every engine of queries.py speaks.
-- One statement after each "-- name:" line; behind the name the number of rows and what the first row begins with.

-- name: count, 1: 17280000
SELECT count(*) AS n FROM cpu;

-- name: one_host_1h, 61: 2025-01-01 08:16:00, 90.18
SELECT date_trunc('minute', time) AS minute, max(usage_user) AS m FROM cpu
WHERE hostname = 'host_249' AND time >= TIMESTAMP '2025-01-01 08:16:20' AND time < TIMESTAMP '2025-01-01 09:16:20'
GROUP BY 1 ORDER BY 1;

-- name: eight_hosts_all_fields, 12: 2025-01-01 06:00:00, 100.0, 100.0, 100.0
SELECT date_trunc('hour', time) AS hour, max(usage_user), max(usage_system), max(usage_idle), max(usage_nice), max(usage_iowait),
max(usage_irq), max(usage_softirq), max(usage_steal), max(usage_guest), max(usage_guest_nice)
FROM cpu
WHERE hostname IN ('host_9', 'host_249', 'host_500', 'host_777', 'host_1001', 'host_1234', 'host_1500', 'host_1999')
AND time >= TIMESTAMP '2025-01-01 06:00:00' AND time < TIMESTAMP '2025-01-01 18:00:00'
GROUP BY 1 ORDER BY 1;

-- name: host_avg, 2000: host_0, 39.1963773148148
SELECT hostname, avg(usage_user) AS a FROM cpu GROUP BY hostname ORDER BY hostname;

-- name: double_groupby_all, 24000: host_0, 2025-01-01 06:00:00, 66.3359166666667, 27.6642222222222
SELECT hostname, date_trunc('hour', time) AS hour, avg(usage_user), avg(usage_system), avg(usage_idle), avg(usage_nice),
avg(usage_iowait), avg(usage_irq), avg(usage_softirq), avg(usage_steal), avg(usage_guest), avg(usage_guest_nice)
FROM cpu WHERE time >= TIMESTAMP '2025-01-01 06:00:00' AND time < TIMESTAMP '2025-01-01 18:00:00'
GROUP BY hostname, 2 ORDER BY hostname, 2;

-- name: last_point, 2000: host_0, 2025-01-01 23:59:50, 51.53, 70.16
SELECT hostname, time, usage_user, usage_system, usage_idle, usage_nice, usage_iowait, usage_irq, usage_softirq, usage_steal,
usage_guest, usage_guest_nice
FROM (SELECT *, row_number() OVER (PARTITION BY hostname ORDER BY time DESC) AS rn FROM cpu) t WHERE rn = 1 ORDER BY hostname;

-- name: high_cardinality, 1: 2880000, 148527193.19
SELECT count(*) AS groups, sum(m) AS total
FROM (SELECT hostname, date_trunc('minute', time) AS minute, max(usage_user) AS m, count(*) AS c FROM cpu GROUP BY hostname, 2) g;

-- name: top_k, 10: 2025-01-01 00:00:10, host_1594, 76.9, 100.0
SELECT time, hostname, usage_user, usage_system FROM cpu ORDER BY usage_system DESC, time, hostname LIMIT 10;

-- name: high_cpu, 1: 910941, 100.0
SELECT count(*) AS n, max(usage_idle) AS m FROM cpu
WHERE usage_user > 90.0 AND time >= TIMESTAMP '2025-01-01 06:00:00' AND time < TIMESTAMP '2025-01-01 18:00:00';

-- name: export_1m, 1000000:
SELECT * FROM cpu WHERE time < TIMESTAMP '2025-01-01 01:23:20';
