package template

import (
	"slices"
	"text/template/parse"
)

// rewrite puts an empty text first into each loop of l, so that each iteration meets the
// writer, which ends an execution that has gone on for too long; and gives what is
// printed to the escape function of the sink.
func rewrite(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			escape(n.Pipe)
		case *parse.IfNode:
			rewrite(n.List)
			rewrite(n.ElseList)
		case *parse.WithNode:
			rewrite(n.List)
			rewrite(n.ElseList)
		case *parse.RangeNode:
			rewrite(n.List)
			rewrite(n.ElseList)
			tick := &parse.TextNode{NodeType: parse.NodeText, Pos: n.Pos}
			n.List.Nodes = slices.Insert(n.List.Nodes, 0, parse.Node(tick))
		}
	}
}

// escape appends the sink's escape function to what p prints, or puts it in the place of
// the one that the operator has put there.
func escape(p *parse.PipeNode) {
	if len(p.Decl) > 0 {
		return // nothing is printed
	}
	last := p.Cmds[len(p.Cmds)-1]
	if id, ok := last.Args[0].(*parse.IdentifierNode); ok && (id.Ident == "json" || slices.Contains(escapes, id.Ident)) {
		last.Args[0] = parse.NewIdentifier(bySink + id.Ident).SetPos(id.Pos)
		return
	}
	id := parse.NewIdentifier(bySink).SetPos(p.Pos)
	p.Cmds = append(p.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: p.Pos, Args: []parse.Node{id}})
}
