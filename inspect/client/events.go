package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// EventFilter selects live events. Empty fields select all. Type is change or notification.
type EventFilter struct {
	// URL selects the events of one page.
	URL string `json:"url,omitempty"`
	// Client selects the notifications of one client.
	Client string `json:"client,omitempty"`
	Type   string `json:"type,omitempty"`
}

// maxEventLine is the largest line of a stream of events, in bytes.
const maxEventLine = 8 << 20

// Events calls handle with each event while it happens: a PingEvent, ChangeEvent or
// NotificationEvent. It returns the error of handle, that of ctx, or the reason why the stream
// ended. The process drops a client that reads too slowly.
func (c *Client) Events(ctx context.Context, f EventFilter, handle func(event any) error) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+Prefix+"/events?"+query(f).Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := c.do(r, "text/event-stream")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEventLine)
	kind := ""
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "event":
			kind = value
		case "data":
			event, err := decodeEvent(kind, value)
			if err != nil {
				return err
			}
			if event == nil {
				continue
			}
			if err := handle(event); err != nil {
				return err
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("the stream of events broke off: %w", err)
	}
	return fmt.Errorf("the stream of events ended: %w", io.ErrUnexpectedEOF)
}

// decodeEvent returns an event, or nil for one of an unknown kind.
func decodeEvent(kind, data string) (any, error) {
	switch kind {
	case "ping":
		return decode[PingEvent](data)
	case "change":
		return decode[ChangeEvent](data)
	case "notification":
		return decode[NotificationEvent](data)
	case "dropped":
		var d DroppedEvent
		if err := json.Unmarshal([]byte(data), &d); err != nil {
			return nil, err
		}
		return nil, errors.New(d.Reason)
	}
	return nil, nil
}

// decode returns the T that data, in JSON, holds.
func decode[T any](data string) (any, error) {
	var v T
	err := json.Unmarshal([]byte(data), &v)
	return v, err
}
