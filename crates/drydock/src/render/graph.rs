//! A plan's subplans as a graph: in the DOT language, and as SVG.

use drydock_api::{State, Tree};

use super::style::short;

const WIDTH: usize = 220;
const HEIGHT: usize = 54;
const GAP_X: usize = 60;
const GAP_Y: usize = 18;
const LABEL_CHARS_MAX: usize = 26;

/// One box of the graph.
struct Node<'t> {
    tree: &'t Tree,
    column: usize,
    row: usize,
    /// The boxes that it depends on.
    from: Vec<usize>,
}

/// Returns the graph in the DOT language.
pub(crate) fn dot(tree: &Tree) -> String {
    let nodes = nodes(tree);
    let mut text =
        "digraph plan {\n  rankdir=LR;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n"
            .to_owned();
    for (at, node) in nodes.iter().enumerate() {
        let label = format!("{}\n{}", label(node.tree), stage(node.tree));
        text.push_str(&format!("  n{at} [label={}];\n", quoted(&label)));
    }
    for (at, node) in nodes.iter().enumerate() {
        for from in &node.from {
            text.push_str(&format!("  n{from} -> n{at};\n"));
        }
    }
    text.push_str("}\n");
    text
}

/// Returns the graph as SVG that can be read without colours.
pub(crate) fn svg(tree: &Tree) -> String {
    let nodes = nodes(tree);
    let columns = nodes.iter().map(|node| node.column).max().unwrap_or(0) + 1;
    let rows = nodes.iter().map(|node| node.row).max().unwrap_or(0) + 1;
    let (width, height) = (columns * (WIDTH + GAP_X) + GAP_X, rows * (HEIGHT + GAP_Y) + GAP_Y);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for node in &nodes {
        let (x, y) = place(node);
        for from in node.from.iter().map(|from| &nodes[*from]) {
            let (fx, fy) = place(from);
            let (x1, y1, y2) = (fx + WIDTH, fy + HEIGHT / 2, y + HEIGHT / 2);
            let middle = (x1 + x) / 2;
            text.push_str(&format!("<path d=\"M{x1} {y1} C{middle} {y1} {middle} {y2} {x} {y2}\" fill=\"none\" stroke=\"#667\"/>\n"));
        }
    }
    for node in &nodes {
        let (x, y) = place(node);
        let (name, stage, edge) =
            (escaped(&label(node.tree)), escaped(&stage(node.tree)), edge(node.tree.state));
        text.push_str(&format!("<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"6\" fill=\"#f7f8fa\" stroke=\"{edge}\" \
             stroke-width=\"2\"/><text x=\"{}\" y=\"{}\" font-weight=\"600\" fill=\"#112\">{name}</text>\
             <text x=\"{}\" y=\"{}\" fill=\"#445\">{stage}</text>\n",
            x + 12,
            y + 22,
            x + 12,
            y + 42));
    }
    text.push_str("</svg>\n");
    text
}

fn place(node: &Node<'_>) -> (usize, usize) {
    (GAP_X / 2 + node.column * (WIDTH + GAP_X), GAP_Y + node.row * (HEIGHT + GAP_Y))
}

/// Places dependent subplans further to the right, and children behind their parent.
fn nodes(tree: &Tree) -> Vec<Node<'_>> {
    let mut nodes = vec![Node { tree, column: 0, row: 0, from: Vec::new() }];
    let mut rows = vec![1];
    add(0, tree, &mut nodes, &mut rows);
    nodes
}

fn add<'t>(parent: usize, tree: &'t Tree, nodes: &mut Vec<Node<'t>>, rows: &mut Vec<usize>) {
    let mut siblings: Vec<(&str, usize)> = Vec::new();
    for subplan in &tree.subplans {
        let before = siblings.iter().filter(|(name, _)| subplan.after.iter().any(|after| after == name));
        let mut from: Vec<usize> = before.map(|(_, at)| *at).collect();
        if from.is_empty() {
            from.push(parent);
        }
        let column = from.iter().map(|at| nodes[*at].column).max().unwrap_or(0) + 1;
        if rows.len() <= column {
            rows.resize(column + 1, 0);
        }
        let row = rows[column];
        rows[column] += 1;
        nodes.push(Node { tree: subplan, column, row, from });
        let at = nodes.len() - 1;
        siblings.push((subplan.name.as_deref().unwrap_or_default(), at));
        add(at, subplan, nodes, rows);
    }
}

fn label(tree: &Tree) -> String {
    let name = tree.name.clone().unwrap_or_else(|| tree.task.clone());
    short(&name, LABEL_CHARS_MAX)
}

fn stage(tree: &Tree) -> String {
    match tree.fate.as_deref() {
        Some(fate @ ("joined" | "dropped" | "failed" | "cancelled" | "ready")) => fate.to_owned(),
        Some(_) | None => format!("{}/{}", tree.phase, tree.state),
    }
}

fn edge(state: State) -> &'static str {
    match state {
        State::Applied | State::Complete => "#1a7f37",
        State::Errored | State::Constrained => "#b42318",
        State::Waiting => "#9a6700",
        State::Processing => "#0b5cad",
        State::Queued | State::Cancelled => "#889",
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use drydock_api::Phase;

    fn tree(name: &str, after: &[&str], subplans: Vec<Tree>) -> Tree {
        Tree {
            plan: "pln-1".into(),
            task: "say \"hi\" <b>".into(),
            phase: Phase::Execute,
            state: State::Queued,
            name: (!name.is_empty()).then(|| name.to_owned()),
            fate: None,
            after: after.iter().map(|after| (*after).to_owned()).collect(),
            agent: None,
            waits_for: None,
            created_at: None,
            updated_at: None,
            choices: Vec::new(),
            subplans,
        }
    }

    /// Breaks if an arrow is missing, or if a user's text can escape its quotes.
    #[test]
    fn arrows_go_from_what_comes_before() {
        let whole = tree(
            "",
            &[],
            vec![tree("a", &[], vec![]), tree("b", &["a"], vec![]), tree("c", &["a", "b"], vec![])],
        );
        let text = dot(&whole);
        for arrow in ["n0 -> n1;", "n1 -> n2;", "n1 -> n3;", "n2 -> n3;"] {
            assert!(text.contains(arrow), "{arrow} in {text}");
        }
        assert!(text.contains(r#"label="say \"hi\" <b>\nexecute/queued""#), "{text}");
        let picture = svg(&whole);
        assert!(picture.contains("say &quot;hi&quot; &lt;b&gt;") && !picture.contains("<b>"), "{picture}");
        assert_eq!(picture.matches("<path").count(), 4);
    }
}
