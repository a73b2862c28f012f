package web

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
)

// The size of a curve in the units of its SVG, which is stretched to the width of the page, and how far
// the curve stays away from the edges.
const (
	curveWidth  = 1000
	curveHeight = 240
	curveMargin = 12
)

// maxDots is how many values a curve has at most for each of them to be marked with a dot.
const maxDots = 150

// curve is the drawing of a value that is a number, over time.
type curve struct {
	Width, Height int
	// Line is the path of the curve. Dots are the values on it, unless there are too many.
	Line string
	Dots []dot
	// Levels are the conditions of subscriptions that can be drawn as a line.
	Levels []level
	// High and Low are the largest and the smallest value, and From and To when the curve begins and ends.
	High, Low string
	From, To  time.Time
	// Unit is that of all values. Other is how many values have another unit, and are not drawn.
	Unit  string
	Other int
}

// dot is one value of a curve.
type dot struct {
	At   string // a path without length
	Says string
}

// level is a line across a curve.
type level struct{ At, Says string }

// drawCurve draws the values of h until now, with the conditions of the subscriptions to its document. It
// returns nil where there are not two numbers to draw.
func drawCurve(h inspect.History, subscriptions []inspect.Subscription, now time.Time) *curve {
	if h.View.Value == nil || h.View.Value.Text() {
		return nil
	}
	c := &curve{Width: curveWidth, Height: curveHeight}
	var numbers []float64
	var versions []inspect.Version // the oldest first
	for _, v := range h.Versions {
		text, unit, _ := strings.Cut(v.Value, " ")
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !pipeline.IsNumber(text) {
			continue
		}
		if len(numbers) == 0 {
			c.Unit = unit // of the newest
		}
		if unit != c.Unit {
			c.Other++
			continue
		}
		numbers, versions = append(numbers, n), append(versions, v)
	}
	if len(numbers) < 2 {
		return nil
	}
	slices.Reverse(numbers)
	slices.Reverse(versions)
	low, high := slices.Min(numbers), slices.Max(numbers)
	c.Low, c.High = versions[slices.Index(numbers, low)].Value, versions[slices.Index(numbers, high)].Value
	c.From, c.To = versions[0].Time, now
	span := high - low
	if span == 0 {
		span = max(math.Abs(high)/10, 1e-9)
	}
	levels := levelsOf(subscriptions, h.Document, low-span, high+span)
	for n := range levels {
		low, high = min(low, n), max(high, n)
	}
	if low == high {
		low, high = low-span, high+span
	}
	took := max(c.To.Sub(c.From).Seconds(), 1)
	x := func(t time.Time) float64 {
		return curveMargin + min(max(t.Sub(c.From).Seconds()/took, 0), 1)*(curveWidth-2*curveMargin)
	}
	y := func(n float64) float64 {
		return curveMargin + (high-n)/(high-low)*(curveHeight-2*curveMargin)
	}
	var line strings.Builder
	for i, v := range versions {
		at := fmt.Sprintf("%.1f %.1f", x(v.Time), y(numbers[i]))
		if i == 0 {
			line.WriteString("M" + at)
		} else { // a value holds until the next one
			fmt.Fprintf(&line, "H%.1fV%.1f", x(v.Time), y(numbers[i]))
		}
		if len(versions) <= maxDots {
			c.Dots = append(c.Dots, dot{At: "M" + at + "h0", Says: v.Value + ", " + v.Time.UTC().Format("2 Jan 2006 15:04 MST")})
		}
	}
	fmt.Fprintf(&line, "H%d", curveWidth-curveMargin)
	c.Line = line.String()
	for n, says := range levels {
		c.Levels = append(c.Levels, level{At: fmt.Sprintf("M0 %.1fH%d", y(n), curveWidth), Says: says})
	}
	slices.SortFunc(c.Levels, func(a, b level) int { return strings.Compare(a.Says, b.Says) })
	return c
}

// levelsOf returns the bounds (such as "below 100") of the subscriptions to a document that lie between low
// and high: the text of each, by its number.
func levelsOf(subscriptions []inspect.Subscription, document string, low, high float64) map[float64]string {
	all := make(map[float64]string)
	add := func(word string, a pipeline.Amount) {
		n, err := strconv.ParseFloat(string(a), 64)
		if err != nil || n < low || n > high {
			return
		}
		says := word + " " + string(a)
		switch known := all[n]; {
		case known == "":
			all[n] = says
		case !strings.Contains(known, word):
			all[n] = known + ", " + says
		}
	}
	for _, s := range subscriptions {
		if s.Document == document {
			add("below", s.Below)
			add("above", s.Above)
		}
	}
	return all
}
