use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};
use serde_json::{Map, Value, json};

/// A command with an argument of every kind, which prints what it was given.
pub(crate) fn command() -> Command {
    Command::new("convert")
        .about("Converts files from one form to another.")
        .long_about("Converts files from one form to another.\n\nIt says what it would do, as JSON, and does nothing.")
        .arg(Arg::new("input").required(true).help("What to convert"))
        .arg(Arg::new("output").help("Where to put it"))
        .arg(Arg::new("rest").num_args(1..).last(true).help("Words for the tool that converts"))
        .arg(Arg::new("dry").long("dry").action(ArgAction::SetTrue).help("Do nothing"))
        .arg(Arg::new("color").long("no-color").action(ArgAction::SetFalse).help("Use colour"))
        .arg(Arg::new("verbose").short('v').long("verbose").action(ArgAction::Count).help("Say more"))
        .arg(Arg::new("form").long("form").value_parser(["yaml", "json", "toml"]).default_value("yaml"))
        .arg(Arg::new("port").long("port").value_parser(value_parser!(u16).range(1024..)).default_value("8080"))
        .arg(Arg::new("ratio").long("ratio").value_parser(value_parser!(f64)))
        .arg(Arg::new("strict").long("strict").value_parser(value_parser!(bool)))
        .arg(Arg::new("tag").short('t').action(ArgAction::Append))
        .arg(Arg::new("keys").long("keys").value_delimiter(','))
        .arg(Arg::new("size").long("size").num_args(2).value_names(["WIDTH", "HEIGHT"]).value_parser(value_parser!(u32)))
        .arg(Arg::new("when").long("when").num_args(0..=1).require_equals(true).default_missing_value("always"))
        .arg(Arg::new("user").long("user").requires("token_file"))
        .arg(Arg::new("token_file").long("token-file"))
        .arg(Arg::new("quiet").long("quiet").action(ArgAction::SetTrue).conflicts_with("verbose"))
        .arg(Arg::new("from_url").long("from-url"))
        .arg(Arg::new("from_file").long("from-file"))
        .group(ArgGroup::new("source").args(["from_url", "from_file"]))
}

/// Prints what the command was given, by its kind.
pub(crate) fn run(matches: &ArgMatches) {
    let mut given = Map::new();
    let mut put = |id: &str, value: Option<Value>| given.extend(value.map(|value| (id.to_owned(), value)));
    for id in ["input", "output", "form", "when", "user", "token_file", "from_url", "from_file"] {
        put(id, matches.get_one::<String>(id).map(|text| json!(text)));
    }
    for id in ["rest", "tag", "keys"] {
        put(id, matches.get_many::<String>(id).map(|texts| json!(texts.collect::<Vec<_>>())));
    }
    for id in ["dry", "color", "quiet"] {
        put(id, Some(json!(matches.get_flag(id))));
    }
    put("verbose", Some(json!(matches.get_count("verbose"))));
    put("port", matches.get_one::<u16>("port").map(|port| json!(port)));
    put("ratio", matches.get_one::<f64>("ratio").map(|ratio| json!(ratio)));
    put("strict", matches.get_one::<bool>("strict").map(|strict| json!(strict)));
    put("size", matches.get_many::<u32>("size").map(|size| json!(size.collect::<Vec<_>>())));
    println!("{}", Value::Object(given));
}
