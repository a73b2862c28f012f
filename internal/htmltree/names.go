package htmltree

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// plainIdentifier matches a name that a selector can use without an escape.
var plainIdentifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,60}$`)

// maxClasses is how many classes of an element a selector may use.
const maxClasses = 20

// Names returns the CSS selectors that name n by its ID or by a class, the best first. Other elements may have the
// same.
func Names(n *html.Node) []string {
	if n.Type != html.ElementNode {
		return nil
	}
	var all, classes []string
	for _, a := range n.Attr {
		switch a.Key {
		case "id":
			if plainIdentifier.MatchString(a.Val) {
				all = append(all, "#"+a.Val)
			}
		case "class":
			for _, c := range strings.Fields(a.Val) {
				if name := n.Data + "." + c; plainIdentifier.MatchString(c) && !slices.Contains(classes, name) && len(classes) < maxClasses {
					classes = append(classes, name)
				}
			}
		}
	}
	return append(all, classes...)
}
