package vokter

import (
	"context"
	"errors"
	"fmt"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// tailDecisions begins to read the decisions of other processes. It returns a function that
// hands them to those who wait, until ctx is done. Decisions of this process come a shorter way,
// and are known already when they come here.
func (r *Router) tailDecisions(ctx context.Context) (hear func() error, err error) {
	told, err := r.transport.Tail(ctx, flow.TopicDecisions)
	if err != nil {
		return nil, fmt.Errorf("what other processes decide cannot be heard: %w", err)
	}
	return func() error {
		for m := range told {
			r.decisions.tell(m)
		}
		if ctx.Err() == nil {
			return errors.New("what other processes decide is not heard any more")
		}
		return nil
	}, nil
}

// tell hands on what a message says; anybody can write one, and what cannot be read is
// about no command of ours.
func (d *decisions) tell(m flow.Message) {
	decision, err := flow.DecisionFrom(m)
	switch {
	case m.Type != flow.TypeDecision || err != nil:
	case decision.Code == 0:
		d.decided(decision.Command, nil)
	default:
		d.decided(decision.Command, &pipeline.Refusal{Code: decision.Code, Message: decision.Reason})
	}
}
