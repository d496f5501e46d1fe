"""Aggressive drivers (TPStream, Listing 1): strong acceleration, then speeding, then hard braking, in one of several
ways.

Each is a situation: a period during which a condition holds of a car's readings. The pattern says how the periods may
lie to each other. Acceleration may meet, overlap, start or lie within speeding; braking may lie within speeding, end
it, or begin during it or at its end. A match is reported at the first instant at which it is certain: the second car is
reported while it is still braking.
"""

import tidegate as tg

readings = tg.stream("Reading", "car bigint, time bigint, speed double, accel double", progress="time")

derived = readings.partition_by("car").derive(
    A=tg.situation(readings.accel > 8, at_least=5),
    B=tg.situation(readings.speed > 70, at_least=4, avg_speed=tg.avg(readings.speed)),
    C=tg.situation(readings.accel < -9, at_least=3),
)
A, B, C = derived.A, derived.B, derived.C
aggressive = derived.match(
    A.meets(B) | A.overlaps(B) | A.starts(B) | A.during(B),
    B.contains(C) | B.finished_by(C) | B.overlaps(C) | B.meets(C),
    A.before(C),
    within=300,
)
program = tg.program(Aggressive=aggressive, Speeding=B)

#: Per car and second: speed, acceleration.
cars = {
    1: [(50, 9.0)] * 4 + [(75, 9.0)] * 3 + [(80, 0.0)] * 6 + [(78, -10.0)] * 4 + [(40, 0.0)] * 4,
    2: [(60, 9.0)] * 6 + [(90, 0.0)] * 5 + [(85, -12.0)] * 10,
    3: [(60, 9.0)] * 3 + [(90, 0.0)] * 9 + [(50, -12.0)] * 9,
}
rows = [
    {"car": car, "time": second, "speed": float(speed), "accel": accel}
    for car, seconds in cars.items()
    for second, (speed, accel) in enumerate(seconds)
]

print(program.explain())
found = program.run({"Reading": rows})
for row in found["Aggressive"].rows():
    print(row)

by_car = {row["car"]: row for row in found["Aggressive"].rows()}
# Car 1: A [0, 7) overlaps B [4, 17), C [13, 17) finishes B; certain once C has lasted three seconds.
assert by_car[1] == {
    "car": 1, "A.ts": 0, "A.te": 7, "B.ts": 4, "B.te": None, "B.avg_speed": (3 * 75 + 6 * 80 + 3 * 78) / 12,
    "C.ts": 13, "C.te": None, "detected": 15,
}  # fmt: skip
# Car 2: A [0, 6) meets B [6, ...), C [11, ...): neither has ended when the match is certain.
assert by_car[2]["detected"] == 13
assert by_car[2]["C.te"] is None
# Car 3 accelerates for three seconds only.
assert by_car.keys() == {1, 2}
