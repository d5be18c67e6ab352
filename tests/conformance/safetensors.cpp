// Reads a safetensors file (or an index) and writes what was in it, in one file or spread over
// several: safetensors IN OUT [MAX_BYTES]; check_safetensors.py compares.

#include "tandem/io/safetensors.h"

#include <cstdlib>
#include <iostream>

#include "tandem/tandem.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    tandem::io::SaveSafetensorsOptions options;
    options.metadata = tandem::io::SafetensorsReader(argv[1]).metadata();
    if (argc > 3) options.max_file_bytes = std::strtoull(argv[3], nullptr, 10);
    const auto tensors = tandem::io::load_safetensors(argv[1]);
    std::cout << tandem::io::save_safetensors(argv[2], tensors, options) << '\n';
  } catch (const tandem::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
