package html

import "golang.org/x/net/html/atom"

// kind says what an element means for the text and for the elements around it.
type kind uint16

const (
	block   kind = 1 << iota // ends the block before it and its own
	item                     // a list item or table row
	pre                      // its lines are blocks
	skip                     // has no visible text
	void                     // has no content
	special                  // not closed by the end tag of an inline element around it
	scope                    // what is within is not closed by end tags that belong outside
	closesP                  // its start tag ends an open paragraph
	raw                      // the tokenizer takes its content for text
	cell                     // td, th
	section                  // table, tbody, thead, tfoot: what rows stand in
	heading
	foreign // svg, math
)

const blockP = block | special | closesP

// kinds of the elements that matter; every other one is inline.
var kinds = map[atom.Atom]kind{
	atom.Script: skip | special | raw, atom.Style: skip | special | raw, atom.Noscript: skip | special | raw,
	atom.Iframe: skip | special | raw, atom.Noembed: skip | special | raw, atom.Noframes: skip | special | raw,
	atom.Textarea: skip | special | raw, atom.Template: skip | special | scope,
	atom.Object: skip | special | scope, atom.Canvas: skip,
	atom.Svg: skip | foreign, atom.Math: skip | foreign,
	atom.Title: special | raw,

	atom.Area: void, atom.Base: void, atom.Basefont: void, atom.Bgsound: void, atom.Br: void | block, atom.Col: void,
	atom.Embed: void, atom.Frame: void, atom.Hr: void | block | closesP, atom.Image: void, atom.Img: void, atom.Input: void,
	atom.Keygen: void, atom.Link: void, atom.Meta: void, atom.Param: void, atom.Source: void, atom.Track: void, atom.Wbr: void,

	atom.Address: blockP, atom.Article: blockP, atom.Aside: blockP, atom.Blockquote: blockP, atom.Center: blockP,
	atom.Details: blockP, atom.Dialog: blockP, atom.Dir: blockP, atom.Div: blockP, atom.Dl: blockP,
	atom.Fieldset: blockP, atom.Figcaption: blockP, atom.Figure: blockP, atom.Footer: blockP, atom.Form: blockP,
	atom.Header: blockP, atom.Hgroup: blockP, atom.Main: blockP, atom.Menu: blockP,
	atom.Nav: blockP, atom.Ol: blockP, atom.P: blockP, atom.Section: blockP, atom.Summary: blockP, atom.Ul: blockP,
	atom.H1: blockP | heading, atom.H2: blockP | heading, atom.H3: blockP | heading,
	atom.H4: blockP | heading, atom.H5: blockP | heading, atom.H6: blockP | heading,
	atom.Pre: blockP | pre, atom.Listing: blockP | pre, atom.Xmp: blockP | pre | raw, atom.Plaintext: blockP | pre | raw,
	atom.Li: blockP | item, atom.Dd: blockP | item, atom.Dt: blockP | item,
	atom.Legend: block, atom.Option: block, atom.Optgroup: block, atom.Search: blockP,

	atom.Table: blockP | scope | section, atom.Caption: block | special | scope, atom.Colgroup: block | special,
	atom.Tbody: block | special | section, atom.Thead: block | special | section, atom.Tfoot: block | special | section,
	atom.Tr: block | special | item, atom.Td: block | special | scope | cell, atom.Th: block | special | scope | cell,

	atom.Button: special, atom.Select: special | block, atom.Marquee: special | scope, atom.Applet: special | scope,
}
