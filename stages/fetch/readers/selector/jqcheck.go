package selector

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// jqChecker refuses jq expressions whose memory or time is out of proportion to the page. Single
// functions of jq cannot be interrupted, and an expression that doubles a value thirty times is
// short. So what an expression takes out of a document may be repeated a few times only: values
// are built and texts are joined in its last step, and variables, loops and definitions, which
// bring back earlier values, are not there.
type jqChecker struct {
	recursions, commas, joins int
}

// Bounds of what repeats a value.
const (
	maxRecursions = 1
	maxCommas     = 3 // before the last step
	maxJoins      = 16
)

// jqFunctions are the functions that take time and memory in proportion to their input.
var jqFunctions = strings.Fields(`add all any arrays ascii_downcase ascii_upcase booleans ceil contains del empty endswith
	first flatten floor from_entries fromdate group_by has iterables join keys keys_unsorted last length limit ltrim ltrimstr map
	map_values max max_by min min_by not nth nulls numbers objects reverse round rtrim rtrimstr scalars select sort sort_by split
	startswith strings to_entries toarray todate tonumber tostring trim type unique unique_by values with_entries`)

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
			text(i.Str)
			check(false, i.Start, i.End)
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
		if !slices.Contains(jqFunctions, t.Func.Name) {
			errs = append(errs, fmt.Errorf("%s is not supported; there are %s", t.Func.Name, strings.Join(jqFunctions, ", ")))
		}
		check(inner && t.Func.Name == "map", t.Func.Args...)
	case gojq.TermTypeObject:
		if !inner {
			errs = append(errs, errors.New("{...} can only be the last step"))
		}
		for _, kv := range t.Object.KeyVals {
			text(kv.KeyString)
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
	return errors.Join(errs...)
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
