SELECT * FROM (SELECT 9007199254740993 AS big, arrow_cast('-9223372036854775808', 'Int64') AS least, arrow_cast('18446744073709551615', 'UInt64') AS most,
  arrow_cast(-7, 'Int8') AS small, 'NaN'::double AS nan, '-inf'::double AS infinite, 0.1::double AS float, arrow_cast(1.5, 'Float32') AS single,
  arrow_cast('-12345678901234567890.5', 'Decimal128(38, 2)') AS decimal, true AS yes, '<img src=x onerror=alert(1)> "q" 😀' AS text, '' AS empty, x'00ff' AS bytes,
  DATE '2024-02-29' AS day, arrow_cast(9223372036854775807, 'Timestamp(ns, "UTC")') AS time, arrow_cast(-9223372036854775806, 'Timestamp(ns, "UTC")') AS early,
  TIME '12:00:01.5' AS clock, INTERVAL '1 day 2 hours' AS span, make_array(1, NULL, 3) AS list, make_array('a', 'b"c') AS texts,
  named_struct('x', 1, 'y', 'two') AS struct, map(['k'], [1]) AS map, NULL AS nothing) CROSS JOIN (VALUES (NULL), (7)) AS v(maybe)
