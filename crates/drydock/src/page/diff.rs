//! The changes of a plan. The page has the list of files; the lines of each file are loaded when they come into view,
//! so a change of any size stays responsive.

use std::fmt::Write;

use drydock_api::Plan;
use drydock_domain::counted;
use maud::{Markup, PreEscaped, html};
use ring::digest::{SHA256, digest};
use serde::Deserialize;

use super::ask::{PageClient, PagePath, PageQuery};
use super::colour::{self, LexState, difference};
use super::language::{Language, language};
use super::mark::icon;
use super::patch::{DiffLine, FileChange, FileDiff, files};
use super::plan::{Tab, head};
use super::shell::{Frame, Html, NavItem, RefreshOn, document, part};
use super::trouble::PageError;
use super::words::title;
use crate::render;

/// The number of lines per request.
const CHUNK: usize = 300;
/// The number of lines in the page itself, for the files at its top.
const AT_ONCE: usize = 800;

/// The layout of changed lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Layout {
    #[default]
    Unified,
    Split,
}

/// The query of the view: layout, and the first line.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct DiffPageQuery {
    #[serde(default)]
    layout: Layout,
    #[serde(default)]
    from: usize,
}

impl Layout {
    fn name(self) -> &'static str {
        match self {
            Layout::Unified => "unified",
            Layout::Split => "split",
        }
    }
}

pub(super) async fn show(
    ask: PageClient,
    PagePath(id): PagePath<String>,
    PageQuery(wanted): PageQuery<DiffPageQuery>,
) -> Result<Html, PageError> {
    let frame = Frame::read(&ask).await?;
    let client = ask.client();
    let plan = client.plan(&id).await?;
    let diff = client.plan_diff(&plan.id).await?;
    let files = files(&diff.text);
    let unfinished = diff.of.is_some().then(|| render::diff::unfinished(&diff, &plan.id)).flatten();
    let main = html! {
        (head(&plan, Tab::Changes))
        @if files.is_empty() {
            div.empty {
                h2 { @if diff.of.is_some() { "No changes" } @else { "No changes yet" } }
                p { @if let Some(said) = &unfinished { (said) } @else if diff.of.is_none() { "The changes of the agents appear here when Execute has run." } }
            }
        } @else {
            @if let Some(said) = &unfinished { p.note { (said) } }
            div.diff-bar {
                p { strong { (counted(diff.files, "file")) } " "
                    span.plus { "+" (diff.lines_added) } " " span.minus { "−" (diff.lines_deleted) } }
                nav.switch aria-label="Layout" {
                    @for layout in [Layout::Unified, Layout::Split] {
                        a href={ "?layout=" (layout.name()) } aria-current=[(layout == wanted.layout).then_some("true")] { (layout.name()) }
                    }
                }
            }
            div.diff {
                nav.diff-files aria-label="Files" { ul { @for (at, file) in files.iter().enumerate() { (entry(at, file)) } } }
                div.diff-body { (bodies(&plan, &files, wanted.layout, &stamp(&diff.text))) }
            }
        }
    };
    Ok(document(
        &frame,
        &format!("Changes of {}", title(&plan)),
        NavItem::Plans,
        RefreshOn::Plan(&plan.id),
        main,
    ))
}

/// Answers with lines of one file, for the script to insert.
pub(super) async fn file(
    ask: PageClient,
    PagePath((id, number)): PagePath<(String, usize)>,
    PageQuery(wanted): PageQuery<DiffPageQuery>,
) -> Result<Html, PageError> {
    let client = ask.client();
    let plan = client.plan(&id).await?;
    let diff = client.plan_diff(&plan.id).await?;
    let files = files(&diff.text);
    let file = files.get(number).ok_or_else(PageError::unknown)?;
    Ok(part(chunk(&plan, number, file, wanted.from, wanted.layout)))
}

fn entry(at: usize, file: &FileDiff<'_>) -> Markup {
    html! {
        li { a href={ "#file-" (at) } data-item title=(file.path) {
            span.file-name { bdi { (file.path) } } span.plus { "+" (file.added) } span.minus { "−" (file.deleted) }
        } }
    }
}

/// Returns a digest of the changes. While it is the same, the script keeps the lines that it has already loaded.
fn stamp(text: &str) -> String {
    digest(&SHA256, text.as_bytes()).as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

fn bodies(plan: &Plan, files: &[FileDiff<'_>], layout: Layout, stamp: &str) -> Markup {
    let mut lines = 0;
    html! {
        @for (at, file) in files.iter().enumerate() {
            section.file id={ "file-" (at) } data-id={ "file-" (at) "-" (stamp) } data-keep aria-labelledby={ "name-" (at) } {
                h2.file-head id={ "name-" (at) } {
                    (icon("file")) code { @if let Some(from) = &file.from { (from) " → " } (file.path) }
                    span.hint { (fate(file.fate)) @if let Some((old, new)) = &file.mode { "mode " (old) " → " (new) } } span.plus { "+" (file.added) } span.minus { "−" (file.deleted) }
                }
                @if file.is_binary { p.note { "Binary file, not shown." } }
                @else if file.lines.is_empty() { p.note { @if file.mode.is_some() { "Only the mode changed." } @else { "No lines changed." } } }
                @else if lines < AT_ONCE {
                    (chunk(plan, at, file, 0, layout))
                } @else { (later(plan, at, 0, file.lines.len(), layout)) }
            }
            ({ lines += file.lines.len().min(CHUNK); PreEscaped("") })
        }
    }
}

fn fate(fate: FileChange) -> &'static str {
    match fate {
        FileChange::Changed => "",
        FileChange::Added => "new",
        FileChange::Deleted => "deleted",
        FileChange::Renamed => "renamed",
    }
}

/// Returns some lines of a file, and the placeholder of the next ones.
fn chunk(plan: &Plan, number: usize, file: &FileDiff<'_>, from: usize, layout: Layout) -> Markup {
    let end = boundary(&file.lines, from.saturating_add(CHUNK));
    let lines = file.lines.get(from..end).unwrap_or_default();
    let mut out = String::new();
    let mut painter =
        Painter { language: language(&file.path), old: LexState::default(), new: LexState::default() };
    for (group, marked) in groups(lines) {
        match layout {
            Layout::Unified => painter.unified(&mut out, group, &marked),
            Layout::Split => painter.split(&mut out, group, &marked),
        }
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "Lines of " (file.path) } data-id={ "lines-" (number) "-" (from) } {
            table class={ "code " (layout.name()) } {
                // The first row is the head of a hunk, which does not determine the widths of the columns.
                @if layout == Layout::Split { colgroup { col.number; col; col.number; col; } }
                tbody { (PreEscaped(out)) }
            }
        }
        @if end < file.lines.len() { (later(plan, number, end, file.lines.len() - end, layout)) }
    }
}

/// Returns the placeholder of lines that are loaded when they come into view. Without the script it is a link.
fn later(plan: &Plan, number: usize, from: usize, count: usize, layout: Layout) -> Markup {
    let address = format!("/plans/{}/diff/{number}?layout={}&from={from}", plan.id, layout.name());
    html! {
        p.later data-id={ "later-" (number) "-" (from) } data-fetch=(address) { a href=(address) { "Show " (counted(count, "more line")) } }
    }
}

/// Returns where a chunk may end: not between old lines and the new ones that replace them.
fn boundary(lines: &[DiffLine<'_>], wanted: usize) -> usize {
    let mut end = wanted.min(lines.len());
    while end < lines.len() && matches!(lines[end], DiffLine::New(..)) && end - wanted < CHUNK {
        end += 1;
    }
    end
}

type ChangedRanges = Vec<Option<(usize, usize)>>;

/// Splits lines into groups of changed and unchanged ones, with the parts that differ between old and new lines.
fn groups<'a, 't>(lines: &'a [DiffLine<'t>]) -> Vec<(&'a [DiffLine<'t>], ChangedRanges)> {
    let is_changed = |line: &DiffLine<'_>| matches!(line, DiffLine::Old(..) | DiffLine::New(..));
    lines
        .chunk_by(|one, other| match (one, other) {
            (DiffLine::New(..), DiffLine::Old(..)) => false,
            (one, other) => is_changed(one) && is_changed(other),
        })
        .map(|group| (group, marks(group)))
        .collect()
}

fn marks(group: &[DiffLine<'_>]) -> ChangedRanges {
    let mut marks = vec![None; group.len()];
    let olds = group.iter().filter(|line| matches!(line, DiffLine::Old(..))).count();
    if olds * 2 == group.len() {
        for at in 0..olds {
            if let (DiffLine::Old(_, old), DiffLine::New(_, new)) = (group[at], group[olds + at])
                && let Some((old, new)) = difference(old, new)
            {
                (marks[at], marks[olds + at]) = (Some(old), Some(new));
            }
        }
    }
    marks
}

/// Writes lines as table rows, with syntax highlighting for both sides.
struct Painter {
    language: Option<&'static Language>,
    old: LexState,
    new: LexState,
}

impl Painter {
    fn unified(&mut self, out: &mut String, group: &[DiffLine<'_>], marks: &ChangedRanges) {
        for (line, marked) in group.iter().zip(marks) {
            match *line {
                DiffLine::Hunk(head) => self.hunk(out, head, 3),
                DiffLine::Note(note) => notice(out, note, 3),
                DiffLine::Same(old, new, text) => {
                    self.old = self.new;
                    let text = self.text(text, DiffSide::New, None);
                    row(out, "", &[number(Some(old)), number(Some(new)), sign(' ', &text)]);
                }
                DiffLine::Old(old, text) => {
                    let text = self.text(text, DiffSide::Old, *marked);
                    row(out, "old", &[number(Some(old)), number(None), sign('-', &text)]);
                }
                DiffLine::New(new, text) => {
                    let text = self.text(text, DiffSide::New, *marked);
                    row(out, "new", &[number(None), number(Some(new)), sign('+', &text)]);
                }
            }
        }
    }

    fn split(&mut self, out: &mut String, group: &[DiffLine<'_>], marks: &ChangedRanges) {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for (line, marked) in group.iter().zip(marks) {
            match *line {
                DiffLine::Hunk(head) => self.hunk(out, head, 4),
                DiffLine::Note(note) => notice(out, note, 4),
                DiffLine::Same(old, new, text) => {
                    self.old = self.new;
                    let text = self.text(text, DiffSide::New, None);
                    row(out, "", &[number(Some(old)), sign(' ', &text), number(Some(new)), sign(' ', &text)]);
                }
                DiffLine::Old(old, text) => left.push((old, self.text(text, DiffSide::Old, *marked))),
                DiffLine::New(new, text) => right.push((new, self.text(text, DiffSide::New, *marked))),
            }
        }
        for at in 0..left.len().max(right.len()) {
            let side = |lines: &[(usize, String)], class, mark| match lines.get(at) {
                Some((line, text)) => (
                    number(Some(*line)),
                    sign(mark, text).replacen("<td", &format!("<td data-side={class}"), 1),
                ),
                None => (number(None), "<td class=gap></td>".to_owned()),
            };
            let (old, new) = (side(&left, "old", '-'), side(&right, "new", '+'));
            row(out, "pair", &[old.0, old.1, new.0, new.1]);
        }
    }

    fn hunk(&mut self, out: &mut String, head: &str, columns: usize) {
        // The state at the end of the last hunk does not apply: the lines in between are unknown.
        (self.old, self.new) = (LexState::default(), LexState::default());
        let mut text = String::new();
        colour::line(&mut text, head, None, &mut LexState::default(), None);
        row(out, "hunk", &[format!("<td colspan={columns}>{text}</td>")]);
    }

    fn text(&mut self, text: &str, side: DiffSide, marked: Option<(usize, usize)>) -> String {
        let mut out = String::new();
        let open = match side {
            DiffSide::Old => &mut self.old,
            DiffSide::New => &mut self.new,
        };
        colour::line(
            &mut out,
            text.trim_end_matches('\r'),
            self.language,
            open,
            marked.filter(|(_, to)| *to <= text.trim_end_matches('\r').len()),
        );
        out
    }
}

#[derive(Debug, Clone, Copy)]
enum DiffSide {
    Old,
    New,
}

fn notice(out: &mut String, note: &str, columns: usize) {
    let mut text = String::new();
    colour::line(&mut text, note, None, &mut LexState::default(), None);
    row(out, "notice", &[format!("<td colspan={columns}>{text}</td>")]);
}

fn row(out: &mut String, class: &str, cells: &[String]) {
    let class = if class.is_empty() { String::new() } else { format!(" class={class}") };
    write!(out, "<tr{class}>{}</tr>", cells.concat()).expect("writing to a String cannot fail");
}

fn number(line: Option<usize>) -> String {
    match line {
        Some(line) => format!("<td class=no data-no={line}></td>"),
        None => "<td class=no></td>".to_owned(),
    }
}

/// Returns the sign as text, so that added and removed lines can be distinguished without colour.
fn sign(mark: char, text: &str) -> String {
    format!("<td class=l><i>{mark}</i>{text}</td>")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(layout: Layout, text: &str) -> String {
        let files = files(text);
        let mut out = String::new();
        let mut painter =
            Painter { language: language("x.rs"), old: LexState::default(), new: LexState::default() };
        for (group, marks) in groups(&files[0].lines) {
            match layout {
                Layout::Unified => painter.unified(&mut out, group, &marks),
                Layout::Split => painter.split(&mut out, group, &marks),
            }
        }
        out
    }

    const SMALL: &str = "diff --git a/x.rs b/x.rs\n@@ -1,2 +1,2 @@\n same\n-let a = 1;\n+let a = 2;\n";

    #[test]
    fn side_by_side_an_old_line_stands_beside_the_one_that_replaces_it() {
        let split = rows(Layout::Split, SMALL);
        assert_eq!(split.matches("<tr").count(), 3, "{split}");
        assert!(
            split.contains("<mark class=n>1</mark>") && split.contains("<mark class=n>2</mark>"),
            "{split}"
        );
        assert_eq!(rows(Layout::Unified, SMALL).matches("<tr").count(), 4);
    }

    /// Breaks if text written by an agent becomes markup of the page.
    #[test]
    fn code_is_never_markup() {
        let text =
            "diff --git a/x.rs b/x.rs\n@@ -1 +1 @@ <script>\n-<b>\n+\"<script>alert(1)</script>\"\n\\ <i>\n";
        for layout in [Layout::Unified, Layout::Split] {
            let shown = rows(layout, text);
            assert!(!shown.contains("<script") && !shown.contains("<b>"), "{shown}");
        }
    }

    #[test]
    fn lines_of_any_number_come_in_chunks_that_miss_none() {
        let count = 3 * CHUNK + 7;
        let added: String = (0..count).map(|line| format!("+line {line}\n")).collect();
        let text = format!("diff --git a/x b/x\n@@ -0,0 +1,{count} @@\n{added}");
        let files = files(&text);
        let (mut from, mut seen) = (0, 0);
        while from < files[0].lines.len() {
            let end = boundary(&files[0].lines, from + CHUNK);
            assert!(end > from && end - from <= 2 * CHUNK);
            seen += end - from;
            from = end;
        }
        assert_eq!(seen, count + 1);
    }
}
