package flow

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

func TestShownEdits(t *testing.T) {
	edits := []Span{{0, 0}, {1, 2}, {4, 4}, {5, 6}, {9, 10}, {14, 15}, {15, 15}}
	if got, want := ShownEdits(edits), []Span{{1, 10}, {14, 15}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if edits[1] != (Span{1, 2}) {
		t.Errorf("the edits themselves became %v", edits)
	}
}

func TestSpansAreReadAsByReflection(t *testing.T) {
	for _, s := range []string{
		`[]`, `null`, `[[0,4]]`, `[[0,4],[5,7],[123456789,1000000000]]`, ` [ [0, 4] ]`, `[[-1,2]]`, `[[1,2,3]]`, `[[1]]`, `[[]]`, `[1,2]`, `[[1,2],]`, `[[1,2][3,4]]`,
		`[[1.5,2]]`, `[["1",2]]`, `[[,]]`, `[[1,2]`, `[[1,2`, `[[1,]]`, `{}`, `"[[1,2]]"`, `7`, `[`, `]`, `[[1,99999999999999999999]]`, `[,[1,2]]`, `[[1,2]]]`,
	} {
		var got Spans
		var want []Span
		err, wantErr := json.Unmarshal([]byte(s), &got), json.Unmarshal([]byte(s), &want)
		if !reflect.DeepEqual([]Span(got), want) || (err == nil) != (wantErr == nil) {
			t.Errorf("%s: got %v, %v; want %v, %v", s, got, err, want, wantErr)
		}
		direct := Spans{}
		if err := direct.UnmarshalJSON([]byte(s)); err == nil && !json.Valid([]byte(s)) {
			t.Errorf("%s: took what is not JSON as %v", s, direct)
		}
	}
}
