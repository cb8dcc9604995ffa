//! Random work of two writers: for any changes to files, a merge keeps the content that it promises to keep.
//!
//! Every line, link and binary file has a unique word, so that a loss can be named. All words of the
//! preferred side are present, except for words of the base that the other side deleted. Words that the other
//! side added are present unless the conflict concerns their place.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};

use drydock_worktree::{CommitId, ConflictFile, DetailedMerge, MergeRequest, Prefer, TreeId};

use crate::fixture::Fixture;
use crate::joiner::listing;

/// Number of cases, normally and with `--soak`.
const CASES: (u64, u64) = (40, 600);
const SEED: u64 = 20;

/// Few names, so that writers conflict; some of them cannot coexist.
const NAMES: [&str; 10] = ["a", "b", "c", "d/e", "d/f", "d", "c/g", "h i", "ü", "a/j"];

type Files = BTreeMap<String, (&'static str, String)>;

/// Deterministic random numbers for a seed (xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % end
    }

    fn word(&mut self, words: &mut usize) -> String {
        *words += 1;
        format!("w{words};")
    }
}

fn base(chance: &mut Chance, words: &mut usize) -> Files {
    let mut files = Files::new();
    for name in ["a", "b", "d/e", "d/f", "h i"] {
        let text = (0..12).map(|_| format!("{}\n", chance.word(words))).collect();
        files.insert(name.to_owned(), ("100644", text));
    }
    files.insert("ü".to_owned(), ("120000", chance.word(words)));
    files.insert("binary".to_owned(), ("100644", format!("\0{}", chance.word(words))));
    files
}

/// Adds a file if neither a file nor a directory is in the way.
fn put(files: &mut Files, name: &str, file: (&'static str, String)) -> bool {
    let in_the_way = |other: &String| {
        other == name || other.starts_with(&format!("{name}/")) || name.starts_with(&format!("{other}/"))
    };
    let free = !files.keys().any(in_the_way);
    if free {
        files.insert(name.to_owned(), file);
    }
    free
}

fn change(files: &mut Files, chance: &mut Chance, words: &mut usize) {
    let Some(name) = files.keys().nth(chance.below(files.len().max(1))).cloned() else { return };
    let (mode, text) = files[&name].clone();
    let target = NAMES[chance.below(NAMES.len())];
    match chance.below(10) {
        0..=2 if mode != "120000" && !text.starts_with('\0') => {
            let mut lines: Vec<String> = text.lines().map(|line| format!("{line}\n")).collect();
            let at = chance.below(lines.len().max(1));
            match chance.below(3) {
                0 => lines.insert(at.min(lines.len()), format!("{}\n", chance.word(words))),
                1 if at < lines.len() => drop(lines.remove(at)),
                _ if at < lines.len() => lines[at] = format!("{}\n", chance.word(words)),
                _ => {}
            }
            files.insert(name, (mode, lines.concat()));
        }
        0..=2 => {
            let text = text.replace(|c: char| c != '\0', "") + &chance.word(words);
            files.insert(name, (mode, text));
        }
        3 | 4 => {
            files.remove(&name);
            if !put(files, target, (mode, text.clone())) {
                files.insert(name, (mode, text));
            }
        }
        5 => drop(files.remove(&name)),
        6 if mode != "120000" => {
            files.insert(name, (if mode == "100644" { "100755" } else { "100644" }, text));
        }
        6 | 7 => {
            files.insert(
                name,
                if mode == "120000" {
                    ("100644", chance.word(words))
                } else {
                    ("120000", chance.word(words))
                },
            );
        }
        _ => {
            let mode = if chance.below(2) == 0 { "100644" } else { "100755" };
            let text = format!("{}\n{}\n", chance.word(words), chance.word(words));
            put(files, target, (mode, text));
        }
    }
}

struct Case {
    base: Files,
    sides: [Files; 2],
}

fn case(chance: &mut Chance) -> Case {
    let mut words = 0;
    let base = base(chance, &mut words);
    let sides = [0, 1].map(|_| {
        let mut files = base.clone();
        for _ in 0..3 + chance.below(5) {
            change(&mut files, chance, &mut words);
        }
        files
    });
    Case { base, sides }
}

/// Writes all commits with one process, three per case.
fn commits(fixture: &Fixture, cases: &[Case]) -> Vec<CommitId> {
    let mut input = String::new();
    let mut mark = 0;
    for case in cases {
        for (nth, files) in [&case.base, &case.sides[0], &case.sides[1]].into_iter().enumerate() {
            mark += 1;
            input.push_str(&format!(
                "commit refs/heads/random\nmark :{mark}\ncommitter A <a@b> 1 +0000\ndata 0\n"
            ));
            if nth > 0 {
                input.push_str(&format!("from :{}\n", mark - nth));
            }
            input.push_str("deleteall\n");
            for (name, (mode, text)) in files {
                input.push_str(&format!("M {mode} inline \"{name}\"\ndata {}\n{text}\n", text.len()));
            }
            input.push_str("reset refs/heads/random\nfrom 0000000000000000000000000000000000000000\n\n");
        }
    }
    let (stream, marks) = (fixture.path("stream"), fixture.path("marks"));
    fs::write(&stream, input).unwrap();
    let export = format!("--export-marks={}", marks.display());
    let mut command = fixture.user_command(&["fast-import", "--quiet", "--force", &export], &fixture.repo());
    let output = command.stdin(File::open(&stream).unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(&marks).unwrap();
    let mut found: Vec<(usize, CommitId)> = text
        .lines()
        .map(|line| {
            let (mark, id) = line.strip_prefix(':').unwrap().split_once(' ').unwrap();
            (mark.parse().unwrap(), id.parse().unwrap())
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, id)| id).collect()
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split(['\n', '\0']).filter(|word| word.starts_with('w')).collect()
}

fn words_of(files: &Files) -> BTreeSet<&str> {
    files.values().flat_map(|(_, text)| words(text)).collect()
}

/// Returns true if a writer deleted a word of the base: it is gone, or git could not detect that its file was
/// moved.
fn deleted(word: &str, base: &Files, files: &Files) -> bool {
    let holding = |files: &Files| {
        files.iter().find(|(_, (_, text))| words(text).contains(word)).map(|(name, _)| name.clone())
    };
    match (holding(base), holding(files)) {
        (Some(was), Some(is)) => was != is && (files.contains_key(&was) || base.contains_key(&is)),
        _ => true,
    }
}

/// One case, merged without a preferred side.
struct Told<'a> {
    case: &'a Case,
    neither: &'a DetailedMerge,
    /// The words in the merged tree.
    words: BTreeSet<String>,
}

impl Told<'_> {
    fn conflicts(&self) -> &[ConflictFile] {
        match self.neither {
            DetailedMerge::Clean(_) => &[],
            DetailedMerge::Conflict { files, .. } => files,
        }
    }

    fn is_about(&self, name: &str) -> bool {
        let about = |path: &str| name == path || name.starts_with(&format!("{path}/"));
        self.conflicts().iter().flat_map(ConflictFile::paths).any(about)
    }

    /// Returns the words that a merge in favour of a side must keep.
    fn owed(&self, won: usize) -> BTreeSet<&str> {
        let (won, other) = (&self.case.sides[won], &self.case.sides[1 - won]);
        let old = words_of(&self.case.base);
        // Git itself may drop a file that one side rewrote and moved, while the other moved it to the same
        // path.
        let dropped = |name: &str, word: &str| !self.words.contains(word) && !self.is_about(name);
        let of_won = pairs(won).filter(|(name, word)| {
            !(old.contains(word) && deleted(word, &self.case.base, other) || dropped(name, word))
        });
        let hunks = || self.conflicts().iter().flat_map(|file| &file.hunks);
        let in_a_hunk =
            |word: &str| hunks().any(|hunk| hunk.ours.contains(word) || hunk.theirs.contains(word));
        let in_a_file = |name: &str| won.keys().any(|file| name.starts_with(&format!("{file}/")));
        let of_other = pairs(other).filter(|(name, word)| {
            let in_conflict = self.is_about(name) || in_a_hunk(word) || in_a_file(name);
            !(old.contains(word) || in_conflict || dropped(name, word))
        });
        of_won.chain(of_other).map(|(_, word)| word).collect()
    }
}

fn pairs(files: &Files) -> impl Iterator<Item = (&str, &str)> {
    files.iter().flat_map(|(name, (_, text))| words(text).into_iter().map(move |word| (name.as_str(), word)))
}

/// Returns the words in a tree.
fn words_in(fixture: &Fixture, tree: &TreeId) -> BTreeSet<String> {
    let files = listing(fixture, tree.as_str());
    files
        .values()
        .flat_map(|file| words(&file.text()).into_iter().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

#[test]
fn whatever_two_writers_do_a_favoured_join_is_clean_and_keeps_what_it_should() {
    let fixture = Fixture::new();
    let seed = std::env::var("DRYDOCK_JOIN_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(SEED);
    println!("seed {seed}");
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let count = if std::env::var_os("DRYDOCK_SOAK").is_some() { CASES.1 } else { CASES.0 };
    let cases: Vec<Case> = (0..count).map(|_| case(&mut chance)).collect();
    let commits = commits(&fixture, &cases);
    let repository = fixture.open();
    let mut conflicts = 0;
    for (nth, case) in cases.iter().enumerate() {
        let [base, ours, theirs] = [0, 1, 2].map(|at| &commits[nth * 3 + at]);
        let join = |favour| repository.merge_detailed(&MergeRequest { base, ours, theirs, favour }).unwrap();
        let neither = join(Prefer::Neither);
        let (DetailedMerge::Clean(tree) | DetailedMerge::Conflict { tree, .. }) = &neither;
        let told = Told { case, neither: &neither, words: words_in(&fixture, tree) };
        conflicts += usize::from(!told.conflicts().is_empty());
        for (favour, side) in [(Prefer::Ours, 0), (Prefer::Theirs, 1)] {
            let about = || format!("case {nth} {favour:?} of {:#?}: {neither:#?}", case.sides);
            let DetailedMerge::Clean(tree) = join(favour) else { panic!("not clean: {}", about()) };
            assert!(
                !matches!(&neither, DetailedMerge::Clean(clean) if *clean != tree),
                "not the same: {}",
                about()
            );
            let kept = words_in(&fixture, &tree);
            let lost: Vec<&str> = told.owed(side).into_iter().filter(|word| !kept.contains(*word)).collect();
            assert!(lost.is_empty(), "{lost:?} is lost: {}", about());
            for (name, file) in listing(&fixture, tree.as_str()) {
                assert!(!file.has("<<<<<<<") && !name.contains('~'), "{name} is git's: {}", about());
            }
        }
    }
    assert!(conflicts * 4 > cases.len(), "the writers should meet more often: {conflicts}");
}
