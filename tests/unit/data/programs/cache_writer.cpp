// cache_writer FILE STOP: reads rows through a cache file, and waits after STOP of them.
#include <unistd.h>

#include <cstdlib>

#include "tests/unit/data/cached_rows.h"

int main(int count, char** args) {
  using namespace tandem::data;
  if (count != 3) return 2;
  auto it = cached(args[1]).iterator();
  Element element;
  std::int64_t number = 0;
  const auto is_next = [&] { return is_right(element, number++); };
  while (number < std::atoll(args[2])) {
    if (!it.next(element) || !is_next()) return 1;
  }
  char byte = 0;
  if (write(kRegistered, &byte, 1) != 1 || read(kGate, &byte, 1) != 1) return 1;
  while (it.next(element)) {
    if (!is_next()) return 1;
  }
  return number == kElements ? 0 : 1;
}
