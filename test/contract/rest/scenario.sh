#!/bin/sh
# Runs the scenario test of the first Vokter server over HTTP against a server without these
# subscriptions: add, duplicate, second client, cancel, add again.
#
#	scenario.sh http://127.0.0.1:9000 [TOKEN]
set -eu
base=${1:?name the server, such as http://127.0.0.1:9000}/vokter/v1
token=${2:-}
document=http://127.0.0.1:9/scenario
failed=0

# expect NAME PATH BODY STATUS ANSWER sends a request and compares the answer.
expect() {
	got=$(curl -sS -w '\n%{http_code} %{content_type}' -H 'Content-Type: application/json' ${token:+-H "Authorization: $token"} -d "$3" "$base/$2")
	want=$(printf '%s\n%s application/json' "$5" "$4")
	if [ "$got" = "$want" ]; then
		echo "ok      $1"
	else
		printf 'FAILED  %s\n  got:  %s\n  want: %s\n' "$1" "$got" "$want"
		failed=1
	fi
}

done='{"code":0,"message":""}'
exists='{"code":5,"message":"The request conflicts with an existing active job, since the provided document URL is already being watched and notified to the provided client URL."}'
missing='{"code":7,"message":"The specified job to cancel does not exist."}'
keywords='"keywords":["the greek","argus panoptes"],"interval":10'
first="\"documentUrl\":\"$document\",\"clientUrl\":\"http://127.0.0.1:9/first\""
second="\"documentUrl\":\"$document\",\"clientUrl\":\"http://127.0.0.1:9/second\""

expect 'add'                          subscribe "{$first,$keywords}"  200 "$done"
expect 'the same pair again'          subscribe "{$first,$keywords}"  409 "$exists"
expect 'a second client'              subscribe "{$second,$keywords}" 200 "$done"
expect 'cancel the first client'      cancel    "{$first}"            200 "$done"
expect 'cancel the second client'     cancel    "{$second}"           200 "$done"
expect 'cancel the second one again'  cancel    "{$second}"           404 "$missing"
expect 'add again'                    subscribe "{$first,$keywords}"  200 "$done"
expect 'cancel'                       cancel    "{$first}"            200 "$done"
exit $failed
