//! A reader of translations (gettext's .po) for Vokter, as a WebAssembly module:
//!
//!     rustc --target wasm32-wasip1 -O --edition 2021 -o gettext.wasm gettext.rs
//!
//! It writes JSON: the language that the file names, and an item for each message, which holds the
//! message and its translation.
use std::io::{self, Read, Write};
use std::process::ExitCode;

/// Entry is a message and its translation.
#[derive(Default)]
struct Entry {
    id: String,
    text: String,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut page = Vec::new();
    io::stdin().read_to_end(&mut page).map_err(|e| e.to_string())?;
    let page =
        std::str::from_utf8(&page).map_err(|e| format!("it is not UTF-8 at byte {}", e.valid_up_to()))?;
    let entries = parse(page)?;
    let mut out = String::from("{");
    if let Some(header) = entries.iter().find(|e| e.id.is_empty()) {
        for line in header.text.lines() {
            if let Some(language) = line.strip_prefix("Language:") {
                out += &format!("\"language\": {}, ", quote(&language.trim().replace('_', "-")));
            }
        }
    }
    out += "\"blocks\": [";
    for (i, e) in entries.iter().filter(|e| !e.id.is_empty()).enumerate() {
        if i > 0 {
            out += ", ";
        }
        out += &format!("[{}, {}]", quote(&e.id), quote(&e.text));
    }
    out += "]}";
    io::stdout().write_all(out.as_bytes()).map_err(|e| e.to_string())
}

/// parse returns the entries of a page. A string goes on in the lines below it.
fn parse(page: &str) -> Result<Vec<Entry>, String> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut translated = false; // the string of the last line is a translation
    for (n, line) in page.lines().enumerate() {
        let line = line.trim().trim_start_matches('\u{feff}');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, rest) = match line.find('"') {
            Some(at) => (line[..at].trim(), &line[at..]),
            None => return Err(format!("line {} has no string", n + 1)),
        };
        let text = unquote(rest).ok_or(format!("the string in line {} has no end", n + 1))?;
        match name {
            "msgid" => {
                entries.push(Entry::default());
                translated = false;
            }
            "" | "msgctxt" | "msgid_plural" => {}
            _ if name.starts_with("msgstr") => translated = true,
            _ => return Err(format!("line {} begins with neither msgid nor msgstr", n + 1)),
        }
        if name == "msgctxt" || name == "msgid_plural" {
            continue;
        }
        let Some(entry) = entries.last_mut() else {
            return Err(format!("line {} stands before the first msgid", n + 1));
        };
        if translated {
            entry.text += &text;
        } else {
            entry.id += &text;
        }
    }
    Ok(entries)
}

/// unquote returns what the string literal s holds, or None if it has no end.
fn unquote(s: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = s.chars().skip(1);
    while let Some(c) = chars.next() {
        match c {
            '"' => return Some(out),
            '\\' => match chars.next()? {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                other => out.push(other),
            },
            _ => out.push(c),
        }
    }
    None
}

/// quote returns s as a string of JSON.
fn quote(s: &str) -> String {
    let mut out = String::from("\"");
    for c in s.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c < ' ' => out += &format!("\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
