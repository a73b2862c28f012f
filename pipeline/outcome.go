package pipeline

// Classes of failed checks, as users see them.
const (
	FailDNS          = "dns"
	FailRefused      = "refused"
	FailTLS          = "tls"
	FailStatus       = "status"
	FailTimeout      = "timeout"
	FailAddress      = "address" // the address guard said no
	FailNetwork      = "network" // any other failure to talk to the host
	FailRedirect     = "redirect"
	FailType         = "unsupported_type"
	FailUnreadable   = "unreadable"
	FailTooLarge     = "too_large"
	FailBusy         = "busy" // 429, or 503 with Retry-After
	FailSelectorGone = "selector_gone"
	FailEmpty        = "empty"
	FailURL          = "url"
)
