-- The judges of the cookbook: for each recipe, by its question, a query in DuckDB over the same rows.

-- # How much has the temperature changed since the reading before?
SELECT sensor, time, celsius - lag(celsius) OVER (PARTITION BY sensor ORDER BY time) AS change FROM Readings

-- # What is the balance after each booking, and which accounts are overdrawn?
SELECT * FROM (
    SELECT account, time, amount, sum(amount) OVER (PARTITION BY account ORDER BY time) AS balance FROM Bookings
) WHERE balance < 0

-- # Which user was seen for the first time?
SELECT DISTINCT ON ("user") "user", time, page FROM Visits ORDER BY "user", time

-- # How do I hear of an alarm that goes on, but at most every five minutes?
WITH RECURSIVE told AS (
    SELECT device, min(time) AS time FROM Alarms GROUP BY device
    UNION ALL
    SELECT device, (SELECT min(time) FROM Alarms a WHERE a.device = told.device AND a.time > told.time + INTERVAL 5 MINUTE)
    FROM told WHERE EXISTS (FROM Alarms a WHERE a.device = told.device AND a.time > told.time + INTERVAL 5 MINUTE)
)
SELECT device, time FROM told

-- # What was an order worth, at the exchange rate of its time?
SELECT id, o.time, price * rate AS euros FROM Orders o ASOF JOIN Rates r ON o.currency = r.currency AND o.time >= r.time

-- # Mean, least and greatest load of the last minute, and how much it scatters?
SELECT host, time, load, avg(load) OVER w, min(load) OVER w, max(load) OVER w, stddev(load) OVER w FROM Loads
WINDOW w AS (PARTITION BY host ORDER BY time RANGE BETWEEN INTERVAL 1 MINUTE PRECEDING AND CURRENT ROW)

-- # The sum of each five rows?
SELECT symbol, time, total FROM (
    SELECT symbol, time, row_number() OVER (PARTITION BY symbol ORDER BY time) AS n,
        sum(volume) OVER (PARTITION BY symbol ORDER BY time ROWS BETWEEN 4 PRECEDING AND CURRENT ROW) AS total
    FROM Ticks
) WHERE n % 5 = 0

-- # Which devices have fallen silent?
SELECT device, time FROM (
    SELECT device, time, lead(time) OVER (PARTITION BY device ORDER BY time) AS next FROM Beats
) WHERE next IS NULL OR next > time + INTERVAL 1 MINUTE

-- # From when to when did each price hold?
SELECT * FROM (
    SELECT item, time, price, lead(time) OVER (PARTITION BY item ORDER BY time) AS until FROM Prices
) WHERE until IS NOT NULL

-- # When did the state of a machine change?
SELECT machine, time, before, state FROM (
    SELECT machine, time, lag(state) OVER (PARTITION BY machine ORDER BY time) AS before, state FROM States
) WHERE before IS NULL OR before <> state

-- # How long did each visit last, and how many pages did it have?
WITH numbered AS (
    SELECT "user", time, count(*) FILTER (WHERE begins) OVER (PARTITION BY "user" ORDER BY time) AS number FROM (
        SELECT "user", time,
            coalesce(time > lag(time) OVER (PARTITION BY "user" ORDER BY time) + INTERVAL 1 MINUTE, true) AS begins
        FROM Pages
    )
)
SELECT "user", max(time) + INTERVAL 1 MINUTE AS "end", min(time), max(time), count(*) FROM numbered GROUP BY "user", number

-- # How many orders were there in the last two minutes, every minute?
SELECT shop, "end" - INTERVAL 2 MINUTE AS "start", "end", count(*), sum(amount)
FROM Sales JOIN generate_series(TIMESTAMP '2026-03-02 09:00', TIMESTAMP '2026-03-02 09:10', INTERVAL 1 MINUTE) AS g("end")
    ON time > "end" - INTERVAL 2 MINUTE AND time <= "end"
GROUP BY shop, "end"

-- # Which are the two best suppliers of every ten minutes?
SELECT supplier, "end", total FROM (
    SELECT supplier, time_bucket(INTERVAL 10 MINUTE, time) + INTERVAL 10 MINUTE AS "end", sum(price) AS total
    FROM Bids GROUP BY ALL
) QUALIFY rank() OVER (PARTITION BY "end" ORDER BY total DESC) <= 2

-- # What did the customer's row say when the purchase was made?
SELECT p.id, p.time, CASE WHEN op <> 'delete' THEN tier END AS tier
FROM Purchases p ASOF LEFT JOIN Customers c ON p.customer = c.id AND p.time >= c.time

-- # From when to when did each row of a table hold?
SELECT * FROM (
    SELECT id, time, op, tier, lead(time) OVER (PARTITION BY id ORDER BY time) AS until FROM Members
) WHERE until IS NOT NULL AND op <> 'delete'

-- # Who logged in from places that are too far apart?
SELECT "user", time, km FROM (
    SELECT "user", time, epoch(time - before) / 3600 AS hours, round(12742 * asin(sqrt(
        sin(radians(lat - lat0) / 2) ** 2 + cos(radians(lat)) * cos(radians(lat0)) * sin(radians(lon - lon0) / 2) ** 2
    ))) AS km
    FROM (
        SELECT *, lag(time) OVER w AS before, lag(lat) OVER w AS lat0, lag(lon) OVER w AS lon0
        FROM Logins WINDOW w AS (PARTITION BY "user" ORDER BY time)
    )
) WHERE km > hours * 900

-- # Which alarms flap: three changes of state within ten minutes?
SELECT device, time, changes FROM (
    SELECT device, time, count(*) OVER (
        PARTITION BY device ORDER BY time RANGE BETWEEN INTERVAL 10 MINUTE PRECEDING AND CURRENT ROW
    ) AS changes
    FROM (SELECT *, lag(state) OVER (PARTITION BY device ORDER BY time) AS before FROM Signals) WHERE before <> state
) WHERE changes >= 3

-- # Which logins succeeded after three failures within a minute?
SELECT "user", time, failures FROM (
    SELECT *, count(*) FILTER (WHERE NOT ok) OVER (
        PARTITION BY "user" ORDER BY time RANGE BETWEEN INTERVAL 1 MINUTE PRECEDING AND CURRENT ROW
    ) AS failures
    FROM Attempts
) WHERE ok AND failures >= 3

-- # Where do three rows follow each other: low, high, low?
SELECT machine, time FROM (
    SELECT *, lag(load, 2) OVER w AS low, lag(load) OVER w AS high
    FROM Steps WINDOW w AS (PARTITION BY machine ORDER BY time)
) WHERE low < 10 AND high > 90 AND load < 10

-- # Which orders were shipped within four hours?
SELECT o.id, o.time, s.time FROM Placed o JOIN Shipped s
    ON s.id = o.id AND s.time BETWEEN o.time AND o.time + INTERVAL 4 HOUR

-- # And which were not?
SELECT id, time FROM Placed o WHERE NOT EXISTS (
    FROM Shipped s WHERE s.id = o.id AND s.time BETWEEN o.time AND o.time + INTERVAL 4 HOUR
)

-- # How many orders were there in each minute, quiet minutes too?
WITH ends AS (
    SELECT shop, unnest(generate_series(min(date_trunc('minute', time)), max(date_trunc('minute', time)), INTERVAL 1 MINUTE))
        + INTERVAL 1 MINUTE AS "end"
    FROM Sales GROUP BY shop
)
SELECT e.shop, e."end", count(s.time), sum(s.amount),
    CASE WHEN count(s.time) > 0 THEN e."end"
        ELSE (SELECT min(n.time) FROM Sales n WHERE n.shop = e.shop AND n.time > e."end") END
FROM ends e LEFT JOIN Sales s ON s.shop = e.shop AND s.time > e."end" - INTERVAL 1 MINUTE AND s.time <= e."end"
GROUP BY e.shop, e."end"

-- # What was the last value of each sensor, minute by minute?
SELECT sensor, tick, celsius
FROM generate_series(TIMESTAMP '2026-03-02 09:00', TIMESTAMP '2026-03-02 10:00', INTERVAL 1 MINUTE) AS g(tick)
JOIN (SELECT *, lead(time) OVER (PARTITION BY sensor ORDER BY time) AS next FROM Readings) AS r
    ON time <= tick AND tick <= time + INTERVAL 2 MINUTE AND (next IS NULL OR tick < next)

-- # Which hosts are still down, every five minutes?
SELECT host, tick, time AS since
FROM generate_series(TIMESTAMP '2026-03-02 09:00', TIMESTAMP '2026-03-02 10:00', INTERVAL 5 MINUTE) AS g(tick)
JOIN (SELECT *, lead(time) OVER (PARTITION BY host ORDER BY time) AS next FROM States) AS s
    ON time <= tick AND (next IS NULL OR tick < next)
WHERE state = 'down' AND tick <= (SELECT max(time) FROM States)

-- # Which devices did nobody hear from within the hour, those that never spoke among them?
SELECT Devices.device, tick
FROM generate_series(TIMESTAMP '2026-03-02 10:00', TIMESTAMP '2026-03-02 11:00', INTERVAL 1 HOUR) AS g(tick), Devices
WHERE NOT EXISTS (
    FROM Beats WHERE Beats.device = Devices.device AND time > tick - INTERVAL 1 HOUR AND time <= tick
)

-- # How do I hear of a silent device, and again every five minutes?
SELECT device, tick, time AS since
FROM generate_series(TIMESTAMP '2026-03-02 09:00', TIMESTAMP '2026-03-02 10:00', INTERVAL 5 MINUTE) AS g(tick)
JOIN (SELECT *, lead(time) OVER (PARTITION BY device ORDER BY time) AS next FROM Beats) AS b
    ON time + INTERVAL 2 MINUTE < tick AND tick <= time + INTERVAL 15 MINUTE AND (next IS NULL OR tick < next)

-- # How much was sold so far in the current ten minutes, every five?
SELECT shop, time_bucket(INTERVAL 10 MINUTE, "end" - INTERVAL 1 MICROSECOND) AS start, "end", sum(amount) AS total
FROM Sold, generate_series(TIMESTAMP '2026-03-02 09:00', TIMESTAMP '2026-03-02 10:00', INTERVAL 5 MINUTE) AS g("end")
WHERE time > time_bucket(INTERVAL 10 MINUTE, "end" - INTERVAL 1 MICROSECOND) AND time <= "end" GROUP BY ALL

-- # How much was made in each shift, from its start to its end?
SELECT b.line, b.time AS start, min(e.time) AS "end",
    (SELECT sum(pieces) FROM Made m WHERE m.line = b.line AND m.time > b.time AND m.time <= min(e.time)) AS pieces
FROM Begun b JOIN Ended e ON e.line = b.line AND e.time > b.time GROUP BY b.line, b.time

-- # Which payments are in the name of somebody on a list, two of them on one day?
SELECT p.name, time_bucket(INTERVAL 1 DAY, time) + INTERVAL 1 DAY AS day, count(*) AS n, sum(amount) AS total
FROM Payments p SEMI JOIN Listed l ON p.name = l.name GROUP BY ALL HAVING count(*) >= 2

-- # Which devices were busy in a minute, and how many packets were lost in it?
WITH busy AS (
    SELECT device, time_bucket(INTERVAL 1 MINUTE, time) + INTERVAL 1 MINUTE AS minute, avg(share) AS share FROM Used GROUP BY ALL
), losses AS (
    SELECT device, time_bucket(INTERVAL 1 MINUTE, time) + INTERVAL 1 MINUTE AS minute, sum(packets) AS packets FROM Lost GROUP BY ALL
)
SELECT device, minute, share, packets FROM busy JOIN losses USING (device, minute) WHERE share > 0.8

-- # Which kiosk broke within ten minutes of a check-in that nobody cancelled?
SELECT i.kiosk, i.time, b.time FROM Came i JOIN Broke b
    ON i.kiosk = b.kiosk AND i.time < b.time AND b.time <= i.time + INTERVAL 10 MINUTE
WHERE NOT EXISTS (FROM Cancelled c WHERE c.kiosk = i.kiosk AND i.time < c.time AND c.time < b.time)

-- # Who went from premium to basic, and since when had they been premium?
WITH runs AS (
    SELECT *, count(*) FILTER (WHERE plan <> 'premium') OVER w AS run, lag(plan) OVER w AS before
    FROM Plans WINDOW w AS (PARTITION BY customer ORDER BY time)
)
SELECT b.customer, min(p.time) AS since, b.time AS until
FROM runs b JOIN runs p ON p.customer = b.customer AND p.plan = 'premium' AND p.run = b.run - 1
WHERE b.plan = 'basic' AND b.before = 'premium' GROUP BY b.customer, b.time

-- # Who had fever and a fast pulse at the same time, and from when to when?
WITH fever AS (
    SELECT patient, min(time) AS ts, max(next) AS te FROM (
        SELECT *, lead(time) OVER w AS next, count(*) FILTER (WHERE celsius <= 38) OVER w AS run
        FROM Temperatures WINDOW w AS (PARTITION BY patient ORDER BY time)
    ) WHERE celsius > 38 GROUP BY patient, run
), fast AS (
    SELECT patient, min(time) AS ts, max(next) AS te FROM (
        SELECT *, lead(time) OVER w AS next, count(*) FILTER (WHERE beats <= 90) OVER w AS run
        FROM Pulses WINDOW w AS (PARTITION BY patient ORDER BY time)
    ) WHERE beats > 90 GROUP BY patient, run
)
SELECT patient, greatest(fever.ts, fast.ts), least(fever.te, fast.te), greatest(fever.te, fast.te)
FROM fever JOIN fast USING (patient) WHERE fever.ts < fast.te AND fast.ts < fever.te

-- # How do I let through two requests of each user within ten seconds?
WITH RECURSIVE numbered AS (
    SELECT *, row_number() OVER (PARTITION BY "user" ORDER BY time) AS n FROM Requests
), run AS (
    SELECT n, id, "user", time, true AS passes, [time] AS passed FROM numbered WHERE n = 1
    UNION ALL
    SELECT n, id, "user", time, passes, CASE WHEN passes THEN list_append(passed, time) ELSE passed END FROM (
        SELECT x.n, x.id, x."user", x.time, passed,
            len(list_filter(passed, lambda p: p > x.time - INTERVAL 10 SECOND)) < 2 AS passes
        FROM run JOIN numbered x ON x."user" = run."user" AND x.n = run.n + 1
    )
)
SELECT id, "user", time FROM run WHERE passes

-- # How much does the load scatter, over the last three readings?
SELECT host, time, avg(load) OVER w - 2 * stddev(load) OVER w AS low, avg(load) OVER w + 2 * stddev(load) OVER w AS high
FROM Loads WINDOW w AS (PARTITION BY host ORDER BY time ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)

-- # Who failed to log in from three addresses within an hour?
SELECT * FROM (
    SELECT "user", time, address, count(DISTINCT address) OVER (
        PARTITION BY "user" ORDER BY time RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW
    ) AS addresses FROM Fails
) WHERE addresses >= 3

-- # How many different pages did each visit have?
WITH begun AS (
    SELECT *, coalesce(time - lag(time) OVER (PARTITION BY "user" ORDER BY time) > INTERVAL 1 MINUTE, true) AS begins FROM Pages
), numbered AS (SELECT *, sum(begins::int) OVER (PARTITION BY "user" ORDER BY time) AS number FROM begun)
SELECT "user", max(time) + INTERVAL 1 MINUTE AS "end", count(*) AS n, count(DISTINCT page) AS different
FROM numbered GROUP BY "user", number

-- # Who failed to log in three times within an hour?
SELECT * FROM (
    SELECT "user", time, address, count(*) OVER (
        PARTITION BY "user" ORDER BY time RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW
    ) AS failures FROM Fails
) WHERE failures >= 3

-- # What is the toll of a busy segment, where no accident is?
WITH stopped AS (
    SELECT car, time, segment, place FROM Reports
    WINDOW w AS (PARTITION BY car ORDER BY time ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)
    QUALIFY count(*) OVER w = 4 AND min(place) OVER w = max(place) OVER w
), accidents AS (
    SELECT a.segment, b.time AS seen FROM stopped a JOIN stopped b
        ON a.place = b.place AND a.car <> b.car AND b.time BETWEEN a.time AND a.time + INTERVAL 30 SECOND
), minutes AS (
    SELECT segment, time_bucket(INTERVAL 1 MINUTE, time) + INTERVAL 1 MINUTE AS minute, count(DISTINCT car) AS cars, avg(speed) AS speed
    FROM Reports GROUP BY ALL
), paced AS (
    SELECT *, avg(speed) OVER (
        PARTITION BY segment ORDER BY minute RANGE BETWEEN INTERVAL 4 MINUTE PRECEDING AND CURRENT ROW
    ) AS pace FROM minutes
)
SELECT segment, minute, 2 * (cars - 2) * (cars - 2) AS toll FROM paced p WHERE cars > 2 AND pace < 40 AND NOT EXISTS (
    FROM accidents a WHERE a.segment = p.segment AND a.seen <= p.minute AND p.minute < a.seen + INTERVAL 5 MINUTE
)
