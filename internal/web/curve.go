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

// maxWords is how many different words a curve has at most.
const maxWords = 6

// curve is the drawing of a value over time: a number, or one of a few words.
type curve struct {
	Width, Height int
	// Axis says what is drawn where, from the top to the bottom, at equal distances: the words, or the numbers at
	// both ends.
	Axis []string
	// Line is the path of the curve. Dots are the values on it, unless there are too many.
	Line string
	Dots []dot
	// Levels are the conditions of subscriptions that can be drawn as a line.
	Levels []level
	// High and Low are the largest and the smallest number, and From and To when the curve begins and ends.
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
// returns nil where there are not two of them to draw.
func drawCurve(h inspect.History, subscriptions []inspect.Subscription, now time.Time) *curve {
	if h.View.Value == nil {
		return nil
	}
	c := &curve{Width: curveWidth, Height: curveHeight, To: now}
	read := c.readNumbers
	if h.View.Value.Text() {
		read = c.readWords
	}
	numbers, versions := read(h)
	if len(numbers) < 2 {
		return nil
	}
	slices.Reverse(numbers)
	slices.Reverse(versions) // the oldest first
	c.From = versions[0].Time
	low, high := slices.Min(numbers), slices.Max(numbers)
	var levels map[float64]string
	if c.Axis == nil {
		c.Low, c.High = versions[slices.Index(numbers, low)].Value, versions[slices.Index(numbers, high)].Value
		span := high - low
		if span == 0 {
			span = max(math.Abs(high)/10, 1e-9)
		}
		top, bottom := c.High, c.Low
		levels = levelsOf(subscriptions, h.Document, low-span, high+span)
		for n := range levels {
			if amount := strings.TrimSpace(strconv.FormatFloat(n, 'f', -1, 64) + " " + c.Unit); n > high {
				high, top = n, amount
			} else if n < low {
				low, bottom = n, amount
			}
		}
		if low == high {
			low, high = low-span, high+span
		} else {
			c.Axis = []string{top, bottom}
		}
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

// readNumbers returns the values of h that are numbers, with their versions, the newest first.
func (c *curve) readNumbers(h inspect.History) (numbers []float64, versions []inspect.Version) {
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
	return numbers, versions
}

// readWords returns the places on the axis of the words of h, with their versions, the newest first. It returns none
// where there is one word, or too many.
func (c *curve) readWords(h inspect.History) (places []float64, versions []inspect.Version) {
	for _, v := range h.Versions {
		if v.Value != "" {
			versions, c.Axis = append(versions, v), append(c.Axis, v.Value)
		}
	}
	slices.Sort(c.Axis)
	c.Axis = slices.Compact(c.Axis)
	if len(c.Axis) < 2 || len(c.Axis) > maxWords {
		return nil, nil
	}
	for _, v := range versions {
		places = append(places, float64(len(c.Axis)-1-slices.Index(c.Axis, v.Value)))
	}
	return places, versions
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
