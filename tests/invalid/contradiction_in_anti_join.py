import tidegate as tg

o = tg.stream("Orders", "order_id bigint, placed timestamp", progress="placed").as_("o")
s = tg.stream("Shipments", "order_id bigint, shipped timestamp", progress="shipped").as_("s")
turned = (
    s.order_id == o.order_id,
    s.shipped <= o.placed,
    o.placed + tg.days(2) <= s.shipped,
)
both = s.join(
    o,
    s.shipped <= o.placed,
    o.placed < s.shipped,
)
p = tg.stream("Payments", "order_id bigint, paid timestamp", progress="paid").as_("p")
unshipped = o.anti_join(s, *turned)
shipped = o.left_join(s, *turned)
in_a_part = p.anti_join(both.select("s.order_id", "s.shipped"), p.order_id == s.order_id, p.paid == s.shipped)
program = tg.program(Unshipped=unshipped, Shipped=shipped.select(o.order_id, o.placed, s.shipped), InAPart=in_a_part)
