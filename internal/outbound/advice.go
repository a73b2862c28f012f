package outbound

// Advised is an error that says itself what to do about it.
type Advised struct {
	Err error
	// Advice is a sentence without a capital and a full stop, such as "try tls: starttls".
	Advice string
}

func (a *Advised) Error() string { return a.Err.Error() + "; " + a.Advice }

// Unwrap returns the error without the advice; its class stays.
func (a *Advised) Unwrap() error { return a.Err }
