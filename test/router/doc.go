// Package router holds the tests of the Router as a whole, through the public API alone.
package router
