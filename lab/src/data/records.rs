//! Dumps of a small shop's database, as JSON lines and as SQL.
#![forbid(unsafe_code)]

use crate::error::Result;
use crate::work::Work;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use std::io::Write;

const ROWS: u32 = 150_000;
const FIRST: &[&str] = &[
    "Anna", "Ben", "Chloe", "David", "Emil", "Fatima", "Goran", "Hanna", "Ivan", "Jun",
];
const LAST: &[&str] = &[
    "Meyer", "Novak", "Okafor", "Park", "Quist", "Rossi", "Silva", "Tanaka", "Usman", "Vogel",
];
const TOWNS: &[&str] = &[
    "Aarhus", "Bergen", "Cádiz", "Dresden", "Espoo", "Firenze", "Gdańsk",
];
const GOODS: &[&str] = &[
    "lamp", "chair", "desk", "shelf", "kettle", "clock", "rug", "mirror",
];
const STATES: &[&str] = &["open", "paid", "sent", "returned"];

struct Order {
    id: u32,
    first: &'static str,
    last: &'static str,
    town: &'static str,
    created: String,
    state: &'static str,
    token: String,
    items: Vec<(&'static str, u32, u32)>,
}

fn orders() -> impl Iterator<Item = Order> {
    let mut rng = ChaCha20Rng::seed_from_u64(6);
    (1..=ROWS).map(move |id| {
        let mut pick = |list: &[&'static str]| list[rng.gen_range(0..list.len())];
        let (first, last, town, state) = (pick(FIRST), pick(LAST), pick(TOWNS), pick(STATES));
        let t = id * 37;
        let count = rng.gen_range(1..5);
        Order {
            id,
            first,
            last,
            town,
            state,
            created: format!(
                "2024-{:02}-{:02}T{:02}:{:02}:{:02}Z",
                t / 2_419_200 % 12 + 1,
                t / 86_400 % 28 + 1,
                t / 3600 % 24,
                t / 60 % 60,
                t % 60
            ),
            token: format!("{:032x}", rng.gen::<u128>()),
            items: (0..count)
                .map(|_| {
                    let name = GOODS[rng.gen_range(0..GOODS.len())];
                    (name, rng.gen_range(1..9), rng.gen_range(199..49_999))
                })
                .collect(),
        }
    })
}

pub fn json(_: &Work, out: &mut dyn Write) -> Result<()> {
    for o in orders() {
        write!(
            out,
            "{{\"id\":{},\"customer\":{{\"first\":\"{}\",\"last\":\"{}\",\"town\":\"{}\"}},\"created\":\"{}\",\"state\":\"{}\",\"token\":\"{}\",\"items\":[",
            o.id, o.first, o.last, o.town, o.created, o.state, o.token
        )?;
        for (i, (name, count, cents)) in o.items.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(
                out,
                "{comma}{{\"name\":\"{name}\",\"count\":{count},\"cents\":{cents}}}"
            )?;
        }
        out.write_all(b"]}\n")?;
    }
    Ok(())
}

pub fn sql(_: &Work, out: &mut dyn Write) -> Result<()> {
    out.write_all(
        b"BEGIN TRANSACTION;\n\
          CREATE TABLE orders (id INTEGER PRIMARY KEY, first TEXT, last TEXT, town TEXT, created TEXT, state TEXT, token TEXT);\n\
          CREATE TABLE items (order_id INTEGER REFERENCES orders, name TEXT, count INTEGER, cents INTEGER);\n",
    )?;
    for o in orders() {
        writeln!(
            out,
            "INSERT INTO orders VALUES({},'{}','{}','{}','{}','{}','{}');",
            o.id, o.first, o.last, o.town, o.created, o.state, o.token
        )?;
        for (name, count, cents) in &o.items {
            writeln!(
                out,
                "INSERT INTO items VALUES({},'{name}',{count},{cents});",
                o.id
            )?;
        }
    }
    out.write_all(b"COMMIT;\n")?;
    Ok(())
}
