// SPDX-License-Identifier: Apache-2.0
// An image of a user's own that is no function: it writes bytes that are no text, and ends.
#include <unistd.h>

int main(void) {
  static const char said[] = "no text: \xff\xfe\x80 \xed\xa0\x80 \xc3\n";
  return write(STDERR_FILENO, said, sizeof said - 1) > 0 ? 3 : 4;
}
