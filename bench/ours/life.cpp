// usage: bench_life ROW, a process of its own
#include <string>

#include "bench/ours/life/saved_model_load.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "saved_model_load") return bench::saved_model_load();
  return 2;
}
