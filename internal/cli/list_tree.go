package cli

import "github.com/vokter/vokter/inspect"

// printTrees prints the pages that clients named, each with the linked pages that it watches.
func (r *results) printTrees(all []inspect.Page) {
	if r.json {
		for _, p := range all {
			r.printPage(p)
		}
		return
	}
	known := make(map[string]inspect.Page, len(all))
	for _, p := range all {
		known[p.URL] = p
	}
	for _, p := range all {
		own := len(p.Keep) > 0
		children := make(map[string][]inspect.LinkedPage)
		seen := make(map[string]bool)
		var bounded []string
		for _, s := range p.Subscriptions {
			own = own || s.FollowedFrom == ""
			for _, l := range s.Linked {
				if !seen[l.URL] {
					seen[l.URL] = true
					children[l.From] = append(children[l.From], l)
				}
			}
			if s.Bounded != "" {
				bounded = append(bounded, s.Bounded)
			}
		}
		if !own {
			continue // it is in the tree of another page
		}
		rows := [][]string{r.treeRow(p.URL, p, true)}
		var add func(from, before string)
		add = func(from, before string) { // before are the lines of the pages above
			for i, l := range children[from] {
				branch, below := "├ ", "│ "
				if i == len(children[from])-1 {
					branch, below = "└ ", "  "
				}
				linked, here := known[l.URL]
				rows = append(rows, r.treeRow(before+branch+l.URL, linked, here))
				add(l.URL, before+below)
			}
		}
		add(p.URL, "")
		r.printTable("", rows, stateWidth)
		for _, why := range bounded {
			r.printLine("%*s  %s", stateWidth, "", why)
		}
	}
}

// treeRow returns the row of p, whose URL is indented. here says that this process knows p.
func (r *results) treeRow(indented string, p inspect.Page, here bool) []string {
	switch {
	case !here:
		return []string{"", indented, "another process owns it, or it is not there yet"}
	case p.State != inspect.StateActive:
		return []string{p.State, indented, "since " + formatTime(p.Since, r.now) + ": " + r.failureText(p)}
	}
	return []string{p.State, indented, r.checksText(p)}
}

// followedText says why s is there, if no client made it.
func followedText(s inspect.Subscription) string {
	if s.FollowedFrom == "" {
		return ""
	}
	return "followed from " + s.FollowedFrom
}
