// Package exec is the sink that runs a command of the operator's for each notification. The
// command gets the documented JSON on its standard input, in one line, and says with its exit
// status what became of it:
//
//	0    delivered
//	65   the notification is refused (EX_DATAERR): tried again a few times, then given up,
//	     and the next one follows
//	67   the receiver does not exist any more (EX_NOUSER): it is expired
//	77   not permitted (EX_NOPERM), and
//	78   not configured (EX_CONFIG): tried again, and told at once as an event of health
//	else tried again, such as 75 (EX_TEMPFAIL), or 1, with which most commands fail
//
// The last line of its standard error is the reason. What it prints is not read otherwise.
//
// No shell is involved: the arguments are those of the configuration, and nothing of a
// notification is among them. A command that has not ended in time, by default within 20 seconds, is
// killed with its whole process group, and the notification is tried again; as it may have
// been delivered, the command should drop what it has seen by its id. A command that needs
// longer gets a timeout beside exec, such as timeout: 5m. What a command leaves running in the
// background it has to look after itself.
//
// Only a configuration file can name a command; neither a flag nor the API does.
package exec
