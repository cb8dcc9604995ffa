//! Lists commits for display and for a replay.

use drydock_domain::CommitLine;

use crate::error::GitError;
use crate::id::{CommitId, TreeId};
use crate::run::GitContext;

/// A commit with its tree, parents and display line.
#[derive(Debug, Clone)]
pub(crate) struct WalkedCommit {
    pub(crate) id: CommitId,
    pub(crate) tree: TreeId,
    pub(crate) parents: Vec<CommitId>,
    pub(crate) line: CommitLine,
}

/// The commits that only one of two tips has, each oldest first, and the commits from which both descend.
#[derive(Debug, Default)]
pub(crate) struct DivergedCommits {
    pub(crate) local: Vec<WalkedCommit>,
    pub(crate) remote: Vec<WalkedCommit>,
    pub(crate) shared: Vec<WalkedCommit>,
}

impl DivergedCommits {
    /// Lists both sides in one call.
    pub(crate) fn walk(
        place: &GitContext,
        local: &CommitId,
        remote: &CommitId,
    ) -> Result<DivergedCommits, GitError> {
        let options = ["--left-right", "--boundary"].map(str::to_owned);
        let revisions = [options.as_slice(), &[format!("{local}...{remote}")]].concat();
        let mut sides = DivergedCommits::default();
        for (mark, walked) in list(place, &revisions)? {
            match mark {
                CommitSide::Left => sides.local.push(walked),
                CommitSide::Right => sides.remote.push(walked),
                CommitSide::Boundary => sides.shared.push(walked),
            }
        }
        Ok(sides)
    }

    pub(crate) fn local_lines(&self) -> Vec<CommitLine> {
        lines(&self.local)
    }

    pub(crate) fn remote_lines(&self) -> Vec<CommitLine> {
        lines(&self.remote)
    }
}

pub(crate) fn lines(walked: &[WalkedCommit]) -> Vec<CommitLine> {
    walked.iter().map(|walked| walked.line.clone()).collect()
}

/// Lists commits, oldest first.
pub(crate) fn commits(place: &GitContext, revisions: &[String]) -> Result<Vec<WalkedCommit>, GitError> {
    Ok(list(place, revisions)?.into_iter().map(|(_, walked)| walked).collect())
}

/// Lists commits for display, oldest first.
pub(crate) fn commit_lines(place: &GitContext, revisions: &[String]) -> Result<Vec<CommitLine>, GitError> {
    Ok(lines(&commits(place, revisions)?))
}

#[derive(Clone, Copy)]
enum CommitSide {
    Left,
    Right,
    Boundary,
}

fn list(place: &GitContext, revisions: &[String]) -> Result<Vec<(CommitSide, WalkedCommit)>, GitError> {
    let attempt = "list commits";
    let call = place.call_without_files(attempt).args(["rev-list", "--reverse", "--topo-order"]);
    let call = call.args(["--no-commit-header", "--encoding=UTF-8"]);
    let call = call.arg("--format=%m%x00%H%x00%T%x00%P%x00%an%x00%s");
    let call = revisions.iter().fold(call, |call, revision| call.arg(revision));
    let output = call.run()?;
    let read = |line: &[u8]| -> Option<(CommitSide, WalkedCommit)> {
        let [mark, id, tree, parents, author, subject]: [&[u8]; 6] =
            line.splitn(6, |b| *b == 0).collect::<Vec<_>>().try_into().ok()?;
        let mark = match mark {
            b"<" => CommitSide::Left,
            b"-" => CommitSide::Boundary,
            _ => CommitSide::Right,
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let id: CommitId = text(id).parse().ok()?;
        let parents = text(parents).split_whitespace().map(|id| id.parse().ok()).collect::<Option<_>>()?;
        let line = CommitLine { id: id.to_string(), subject: text(subject), author: text(author) };
        Some((mark, WalkedCommit { id, tree: text(tree).parse().ok()?, parents, line }))
    };
    let body = output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout);
    let all = body.split(|b| *b == b'\n').filter(|_| !output.stdout.is_empty());
    all.map(|line| read(line).ok_or_else(|| GitError::unexpected(attempt, String::from_utf8_lossy(line))))
        .collect()
}
