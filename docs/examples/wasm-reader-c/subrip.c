/* A reader of SubRip subtitles (.srt) for Vokter, as a WebAssembly module:
 *
 *	clang --target=wasm32-wasi -O2 -o subrip.wasm subrip.c
 *
 * It writes one line of text for each subtitle and leaves out numbers and times, so that
 * subtitles that only moved give the same text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char line[64 * 1024];

int main(void) {
	enum { NUMBER, TIME, TEXT } expected = NUMBER;
	for (long n = 1; fgets(line, sizeof line, stdin); n++) {
		line[strcspn(line, "\r\n")] = '\0';
		switch (expected) {
		case NUMBER:
			if (line[0] == '\0')
				continue; /* a blank line more */
			if (strspn(line, "0123456789\xef\xbb\xbf") != strlen(line)) {
				fprintf(stderr, "line %ld is not the number of a subtitle\n", n);
				return EXIT_FAILURE;
			}
			expected = TIME;
			break;
		case TIME:
			if (!strstr(line, " --> ")) {
				fprintf(stderr, "line %ld is not the time of a subtitle\n", n);
				return EXIT_FAILURE;
			}
			expected = TEXT;
			break;
		case TEXT:
			if (line[0] == '\0') {
				putchar('\n');
				expected = NUMBER;
			} else {
				fputs(line, stdout);
				putchar(' ');
			}
		}
	}
	if (ferror(stdin) || fflush(stdout) != 0) {
		perror("the page");
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
