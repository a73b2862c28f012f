package inspect

import "strings"

// AccessAdvice returns what an operator can do where reason, why a check failed, is an answer that asks
// for credentials or refuses them: 401 or 403. Otherwise it returns nothing.
func AccessAdvice(reason string) string {
	if strings.HasPrefix(reason, "HTTP status 401") || strings.HasPrefix(reason, "HTTP status 403") {
		return "if the page needs credentials, give them in access of the configuration"
	}
	return ""
}

// WithAccessAdvice returns reason with its AccessAdvice, if it has one.
func WithAccessAdvice(reason string) string {
	if advice := AccessAdvice(reason); advice != "" {
		return reason + "; " + advice
	}
	return reason
}
