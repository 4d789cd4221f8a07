//! a-tree's side of benchmarks.mixed: filters and messages as lines in; seconds per message and rows out.
//!
//!     mixed_atree FILTERS MESSAGES ANSWERS.json PASSES FILTERS_PER_TREE
//!
//! An insertion looks at all roots of its tree, so that a million in one tree take hours: a large set is spread over
//! several trees. A search looks at all predicates anyway, and takes about as long in all trees as in one.

use a_tree::{ATree, AttributeDefinition};
use std::{env, fs, time::Instant};

const LIMIT: f64 = 60.0; // seconds after which no further pass begins

enum Value<'a> {
    Text(&'a str),
    Number(i64),
}

type Message<'a> = Vec<(&'a str, Value<'a>)>;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let read = |path: &str| fs::read_to_string(path).expect("a file to read");
    let (filters, asked) = (read(&arguments[0]), read(&arguments[1]));
    let passes: usize = arguments[3].parse().expect("a number of passes");
    let per_tree: usize = arguments[4].parse().expect("a number of filters");
    let messages: Vec<Message> = asked.lines().map(message).collect();
    let start = Instant::now();
    let trees = build(&filters.lines().collect::<Vec<_>>(), &attributes(&messages[0]), per_tree);
    let registering = start.elapsed().as_secs_f64();
    let mut found = ask(&trees, &messages); // to warm up
    let mut times = Vec::new();
    let matching = Instant::now();
    while times.is_empty() || (times.len() < passes && matching.elapsed().as_secs_f64() < LIMIT) {
        let start = Instant::now();
        found = ask(&trees, &messages);
        times.push(start.elapsed().as_secs_f64() / messages.len() as f64);
    }
    times.sort_by(f64::total_cmp);
    let seconds = times[times.len() / 2];
    let form = if trees.len() == 1 { "one tree".into() } else { format!("{} trees of {per_tree}", trees.len()) };
    let head = format!("{{\"seconds\": {seconds:e}, \"registering\": {registering}, \"form\": \"{form}\", \"rows\": ");
    fs::write(&arguments[2], format!("{head}{found:?}}}")).expect("a file to write");
}

fn message(line: &str) -> Message<'_> {
    let pairs = line.split(' ').map(|token| token.split_once('=').expect("name=value"));
    pairs.map(|(name, value)| (name, value_of(name, value))).collect()
}

fn value_of<'a>(name: &str, value: &'a str) -> Value<'a> {
    if name.starts_with('s') {
        return Value::Text(value);
    }
    Value::Number(value.parse().expect("a whole number"))
}

fn attributes(message: &Message) -> Vec<AttributeDefinition> {
    let define = |(name, value): &(&str, Value)| match value {
        Value::Text(_) => AttributeDefinition::string(name),
        Value::Number(_) => AttributeDefinition::integer(name),
    };
    message.iter().map(define).collect()
}

fn build(filters: &[&str], attributes: &[AttributeDefinition], per_tree: usize) -> Vec<ATree<usize>> {
    let grow = |(number, part): (usize, &[&str])| {
        let mut tree = ATree::new(attributes).expect("attributes with different names");
        for (k, line) in part.iter().enumerate() {
            tree.insert(&(number * per_tree + k), &expression(line)).expect("a valid expression");
        }
        tree
    };
    filters.chunks(per_tree).enumerate().map(grow).collect()
}

/// Equalities come first in a line: the first part of a conjunction decides whether the others are looked at.
fn expression(line: &str) -> String {
    let part = |token: &str| match token.split_once('=') {
        Some((name, value)) => format!("{name} = \"{value}\""),
        None => {
            let bounds: Vec<&str> = token.split(':').collect();
            format!("{0} >= {1} and {0} <= {2}", bounds[0], bounds[1], bounds[2])
        }
    };
    line.split(' ').map(part).collect::<Vec<_>>().join(" and ")
}

fn ask(trees: &[ATree<usize>], messages: &[Message]) -> Vec<Vec<usize>> {
    messages.iter().map(|message| trees.iter().flat_map(|tree| search(tree, message)).collect()).collect()
}

fn search(tree: &ATree<usize>, message: &Message) -> Vec<usize> {
    let mut builder = tree.make_event();
    for (name, value) in message {
        match value {
            Value::Text(text) => builder.with_string(name, text).expect("a string attribute"),
            Value::Number(number) => builder.with_integer(name, *number).expect("an integer attribute"),
        }
    }
    let event = builder.build().expect("all attributes");
    let report = tree.search(&event).expect("an answer");
    report.matches().iter().map(|row| **row).collect()
}
