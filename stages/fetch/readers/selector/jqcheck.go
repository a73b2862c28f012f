package selector

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// jqChecker refuses jq expressions whose memory or time is out of proportion to the page. Single
// functions of jq cannot be interrupted, and an expression that doubles a value thirty times is
// short. So what an expression takes out of a document may be repeated a few times only: values
// are built and texts are joined in its last step, and variables, loops and definitions, which
// bring back earlier values, are not there.
//
// What it lets through it changes so that it charges the jqBudget.
type jqChecker struct {
	recursions, commas, joins int
}

// Bounds of what repeats a value.
const (
	maxRecursions = 1
	maxCommas     = 3 // before the last step
	maxJoins      = 16
)

// jqFunctions are the functions that take time and memory in proportion to their input, with the numbers of
// arguments that each may have.
var jqFunctions = map[string][]int{
	"all": {0, 1, 2}, "any": {0, 1, 2}, "first": {0, 1}, "flatten": {0, 1}, "last": {0, 1}, "nth": {1, 2},
	"limit": {2},
}

func init() {
	for arguments, names := range []string{
		`add arrays ascii_downcase ascii_upcase booleans ceil empty floor from_entries fromdate iterables keys length ltrim max min not nulls numbers objects reverse round rtrim scalars sort strings
		to_entries toarray todate tonumber tostring trim type unique values`,
		`contains del endswith group_by has join ltrimstr map map_values max_by min_by rtrimstr select sort_by split
		startswith unique_by with_entries`,
	} {
		for name := range strings.FieldsSeq(names) {
			jqFunctions[name] = []int{arguments}
		}
	}
}

// literalArguments are the functions whose first argument is a text or a number that the expression itself has.
// A text of the page would make their time or their result grow with the square of the page.
var literalArguments = strings.Fields("contains endswith flatten has join limit ltrimstr nth rtrimstr split startswith")

var jqOperators = []gojq.Operator{
	gojq.OpPipe, gojq.OpComma, gojq.OpAlt, gojq.OpAnd, gojq.OpOr,
	gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe, gojq.OpAdd,
}

// checkQuery checks q; last says whether its result is a result of the expression.
func (c *jqChecker) checkQuery(q *gojq.Query, last bool) error {
	switch {
	case q == nil:
		return nil
	case len(q.FuncDefs) > 0 || len(q.Imports) > 0 || q.Meta != nil:
		return errors.New("definitions and modules are not supported")
	case len(q.Patterns) > 0:
		return errors.New("variables (as $x) are not supported")
	case q.Term != nil:
		return c.checkTerm(q.Term, last)
	case q.Left == nil || q.Right == nil:
		return errors.New("there is no expression")
	case !slices.Contains(jqOperators, q.Op):
		return fmt.Errorf("the operator %s is not supported", q.Op)
	case q.Op == gojq.OpPipe:
		return errors.Join(c.checkQuery(q.Left, false), c.checkQuery(q.Right, last))
	case q.Op == gojq.OpComma && !last:
		if c.commas++; c.commas > maxCommas {
			return fmt.Errorf("more than %d commas before the last step are not supported", maxCommas)
		}
	case q.Op == gojq.OpAdd:
		if err := c.countJoin(last); err != nil {
			return err
		}
		sum := *q
		*q = *pipe(&sum, chargeFor(madeValue, ""))
		q = &sum
	}
	return errors.Join(c.checkQuery(q.Left, last), c.checkQuery(q.Right, last))
}

func (c *jqChecker) checkTerm(t *gojq.Term, last bool) error {
	// What a suffix is applied to is no result yet.
	inner := last && len(t.SuffixList) == 0
	var errs []error
	check := func(last bool, qs ...*gojq.Query) {
		for _, q := range qs {
			errs = append(errs, c.checkQuery(q, last))
		}
	}
	text := func(s *gojq.String) {
		if s == nil {
			return
		}
		for _, q := range s.Queries {
			if q.Term == nil || q.Term.Type != gojq.TermTypeString || q.Term.Str.Queries != nil { // not a piece of the text
				errs = append(errs, c.countJoin(inner))
			}
			check(inner, q)
		}
	}
	index := func(i *gojq.Index) {
		if i != nil {
			for _, q := range []*gojq.Query{i.Start, i.End} {
				if q != nil && !isLiteral(q) {
					errs = append(errs, fmt.Errorf("[%s] is not supported; an index is a number or a text", q))
				}
			}
			if i.Str != nil && i.Str.Queries != nil {
				errs = append(errs, fmt.Errorf("[%s] is not supported; an index is a number or a text", i.Str))
			}
		}
	}
	switch t.Type {
	case gojq.TermTypeIdentity, gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber:
	case gojq.TermTypeRecurse:
		if c.recursions++; c.recursions > maxRecursions {
			errs = append(errs, errors.New("more than one .. is not supported"))
		}
	case gojq.TermTypeIndex:
		index(t.Index)
	case gojq.TermTypeFunc:
		if err := checkFunction(t.Func); err != nil {
			errs = append(errs, err)
		}
		check(inner && t.Func.Name == "map", t.Func.Args...)
	case gojq.TermTypeObject:
		if !inner {
			errs = append(errs, errors.New("{...} can only be the last step"))
		}
		for _, kv := range t.Object.KeyVals {
			if strings.HasPrefix(kv.Key, "$") {
				errs = append(errs, fmt.Errorf("%s is not supported", kv.Key))
			}
			if kv.KeyString != nil && kv.KeyString.Queries != nil {
				kv.KeyString, kv.KeyQuery = nil, &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeString, Str: kv.KeyString}}
			}
			check(inner, kv.KeyQuery, kv.Val)
		}
	case gojq.TermTypeArray:
		check(inner, t.Array.Query)
	case gojq.TermTypeString:
		text(t.Str)
	case gojq.TermTypeIf:
		check(false, t.If.Cond)
		check(inner, t.If.Then, t.If.Else)
		for _, e := range t.If.Elif {
			check(false, e.Cond)
			check(inner, e.Then)
		}
	case gojq.TermTypeTry:
		check(inner, t.Try.Body, t.Try.Catch)
	case gojq.TermTypeQuery:
		check(inner, t.Query)
	case gojq.TermTypeUnary:
		errs = append(errs, c.checkTerm(t.Unary.Term, inner))
	default:
		errs = append(errs, errors.New("reduce, foreach, label and @formats are not supported"))
	}
	for _, s := range t.SuffixList {
		index(s.Index)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	charge(t)
	return nil
}

// checkFunction returns why f cannot be called.
func checkFunction(f *gojq.Func) error {
	counts, ok := jqFunctions[f.Name]
	switch {
	case !ok:
		return fmt.Errorf("%s is not supported; there are %s", f.Name, strings.Join(slices.Sorted(maps.Keys(jqFunctions)), ", "))
	case !slices.Contains(counts, len(f.Args)):
		return fmt.Errorf("%s with %d arguments is not supported", f.Name, len(f.Args))
	case len(f.Args) > 0 && slices.Contains(literalArguments, f.Name) && !isLiteral(f.Args[0]):
		return fmt.Errorf("%s needs a text or a number in the expression itself, such as %s(\"a\"), and not %s", f.Name, f.Name, f.Args[0])
	}
	return nil
}

// isLiteral reports whether q is a text or a number.
func isLiteral(q *gojq.Query) bool {
	t := q.Term
	if t == nil || len(t.SuffixList) > 0 {
		return false
	}
	if t.Type == gojq.TermTypeUnary && len(t.Unary.Term.SuffixList) == 0 {
		t = t.Unary.Term
	}
	return t.Type == gojq.TermTypeNumber || t.Type == gojq.TermTypeString && t.Str.Queries == nil
}

// countJoin counts what puts values together.
func (c *jqChecker) countJoin(last bool) error {
	if !last {
		return errors.New(`texts are joined in the last step only, with + or "\(...)"`)
	}
	if c.joins++; c.joins > maxJoins {
		return fmt.Errorf("more than %d joined values are not supported", maxJoins)
	}
	return nil
}
