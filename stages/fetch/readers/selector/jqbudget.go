package selector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// Bounds of the evaluation of all jq expressions of a view on one page.
const (
	maxInstructions = 20_000_000 // these take some seconds
	maxMade         = 64 << 20   // about the bytes of memory of all values that the expressions make
	maxDeepSize     = 160 << 20  // the bytes of a document, each counted once for each level that holds it
	maxDigits       = 1_000      // of a number: to convert it takes time that grows faster than its length
)

// jqBudget is what the evaluation of the jq expressions of a view on one page may still use. gojq looks at its
// context before each instruction: the budget is that context, and is done when it is used up. Within an
// instruction gojq looks at nothing, so the expressions call chargeName before each function whose time or memory
// is not small, and after all that makes a value.
type jqBudget struct {
	context.Context
	instructions int
	made         int64
}

func (b *jqBudget) usedUp() bool { return b.instructions > maxInstructions || b.made > maxMade }

var closedChannel = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done counts an instruction.
func (b *jqBudget) Done() <-chan struct{} {
	if b.instructions++; b.usedUp() {
		return closedChannel
	}
	return b.Context.Done()
}

// Err says why the evaluation ends.
func (b *jqBudget) Err() error {
	if b.usedUp() {
		return context.DeadlineExceeded
	}
	return b.Context.Err()
}

const (
	// chargeName is the function that charges the budget. No expression can name it.
	chargeName = "charge "
	// budgetName is the variable that holds the budget.
	budgetName = "$budget"
	// madeValue in place of the name of a function says that its result is charged.
	madeValue = "made"
)

var jqOptions = []gojq.CompilerOption{
	gojq.WithVariables([]string{budgetName}),
	gojq.WithFunction(chargeName, 3, 3, func(v any, args []any) any {
		b := args[0].(*jqBudget)
		b.made += jqCost(args[1].(string), args[2].(string), v)
		if b.usedUp() {
			return errors.New("it takes too much") // b is done
		}
		if s, ok := v.(string); ok && args[1] == "tonumber" && len(s) > maxDigits {
			return errors.New("the text is too long for a number")
		}
		return v
	}),
}

// chargedFunctions are the functions that make something as large as their input, or larger.
var chargedFunctions = strings.Fields(`add ascii_downcase ascii_upcase del flatten from_entries group_by join keys
	map_values max_by min_by reverse sort sort_by split to_entries toarray tonumber tostring unique unique_by`)

// jqCost returns about how many bytes function makes of v. Text is its argument.
func jqCost(function, text string, v any) int64 {
	const element, member, object = 16, 40, 300
	switch v := v.(type) {
	case string:
		switch function {
		case "tostring":
			return 0
		case "split":
			return 2 * element * int64(strings.Count(v, text)+1)
		}
		return int64(len(v))
	case []any:
		n := int64(len(v))
		switch function {
		case "tostring", "flatten", "join", "add":
			return deepSize(v) + n*int64(len(text))
		case madeValue, "reverse", "sort", "unique", "max_by", "min_by", "del":
			return element * n
		case "from_entries":
			return (object + member) * n
		}
		return 4 * element * n
	case map[string]any:
		n := int64(len(v))
		switch function {
		case "tostring", "flatten", "join", "add":
			return deepSize(v) + n*int64(len(text))
		case "to_entries":
			return (object + member) * n
		case "keys":
			return 2 * element * n
		}
		if function == madeValue {
			for k := range v { // a map reads its keys
				n += int64(len(k)) / member
			}
		}
		return object + member*n
	}
	return element
}

// scalarSize is about how many bytes a number, true, false or null takes at least.
const scalarSize = 8

// deepSize returns about how many bytes v takes as JSON.
func deepSize(v any) int64 {
	d := documentSize{}
	d.add(v, 1, 0)
	return d.bytes
}

// documentSize is the size of a document.
type documentSize struct {
	bytes  int64 // with the weight that add gives them
	digits int   // of its longest number
}

// add adds v. Each byte counts weight times, and deeper for each level within v.
func (d *documentSize) add(v any, weight, deeper int64) {
	switch v := v.(type) {
	case string:
		d.bytes += weight * int64(len(v))
	case json.Number:
		d.bytes += weight * max(scalarSize, int64(len(v)))
		d.digits = max(d.digits, len(v))
	case []any:
		for _, e := range v {
			d.add(e, weight+deeper, deeper)
		}
	case map[string]any:
		for k, e := range v {
			d.bytes += weight * int64(len(k))
			d.add(e, weight+deeper, deeper)
		}
	default:
		d.bytes += weight * scalarSize
	}
}

// checkDocument returns why the jq expression text cannot be evaluated on doc, or nil. gojq reads a number whenever
// it looks at it. ".." names each part of a document, so that a value in 500 levels is looked at 500 times.
func checkDocument(text string, doc any) error {
	var d documentSize
	d.add(doc, 1, 1)
	switch {
	case d.digits > maxDigits:
		return Unreadable(fmt.Errorf("the page has a number of %d characters, and a jq expression such as %q takes at most %d", d.digits, text, maxDigits))
	case d.bytes > maxDeepSize:
		return Unreadable(fmt.Errorf("the page is nested too deeply for a jq expression such as %q (its parts at all levels take more than %d bytes); a JSON pointer can name the values", text, maxDeepSize))
	}
	return nil
}

// charge makes t charge the budget before it is evaluated, if it is a function that makes something of its input,
// and for its value, if it makes one.
func charge(t *gojq.Term) {
	inner := *t
	inner.SuffixList = nil
	q := &gojq.Query{Term: &inner}
	switch {
	case t.Type == gojq.TermTypeFunc && t.Func.Name == "map":
		q = mapQuery(t.Func.Args[0])
	case t.Type == gojq.TermTypeFunc && t.Func.Name == "with_entries":
		q = pipe(chargedCall("to_entries"), pipe(mapQuery(t.Func.Args[0]), chargedCall("from_entries")))
	case t.Type == gojq.TermTypeFunc && slices.Contains(chargedFunctions, t.Func.Name):
		literal := ""
		if len(t.Func.Args) == 1 && t.Func.Args[0].Term != nil && t.Func.Args[0].Term.Str != nil {
			literal = t.Func.Args[0].Term.Str.Str
		}
		q = pipe(chargeFor(t.Func.Name, literal), q)
	case t.Type == gojq.TermTypeArray, t.Type == gojq.TermTypeObject, t.Type == gojq.TermTypeString && t.Str.Queries != nil:
		q = pipe(q, chargeFor(madeValue, ""))
	default:
		return
	}
	*t = gojq.Term{Type: gojq.TermTypeQuery, Query: q, SuffixList: t.SuffixList}
}

// mapQuery returns map(f), of which gojq has the definition [.[] | f].
func mapQuery(f *gojq.Query) *gojq.Query {
	each := &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIdentity, SuffixList: []*gojq.Suffix{{Iter: true}}}}
	array := &gojq.Term{Type: gojq.TermTypeArray, Array: &gojq.Array{Query: pipe(each, f)}}
	charge(array)
	return &gojq.Query{Term: array}
}

func chargedCall(function string) *gojq.Query {
	t := &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: function}}
	charge(t)
	return &gojq.Query{Term: t}
}

func pipe(left, right *gojq.Query) *gojq.Query {
	return &gojq.Query{Left: left, Op: gojq.OpPipe, Right: right}
}

// chargeFor returns the call that charges the budget for function.
func chargeFor(function, text string) *gojq.Query {
	literal := func(s string) *gojq.Query {
		return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeString, Str: &gojq.String{Str: s}}}
	}
	budget := &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: budgetName}}}
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{
		Name: chargeName, Args: []*gojq.Query{budget, literal(function), literal(text)},
	}}}
}
