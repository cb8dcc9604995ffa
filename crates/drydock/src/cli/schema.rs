//! `drydock schema`: JSON Schemas of files that agents write for drydock, generated from the code that reads them.

use clap::{Args, ValueEnum};
use drydock_engine::strategy_schema;
use serde_json::json;

use super::report::{CliResult, Report};

/// Arguments of `drydock schema`.
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// File to describe
    file: SchemaFile,
}

/// The files that have a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SchemaFile {
    /// Strategy draft, .drydock/strategy.json
    Strategy,
}

pub(crate) fn run(args: &Schema) -> CliResult {
    let schema = match args.file {
        SchemaFile::Strategy => strategy_schema(),
    };
    let text = format!("{schema:#}\n");
    Ok(Report::new(json!({ "schema": schema }), text).exact())
}
