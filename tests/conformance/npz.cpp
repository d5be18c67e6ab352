// Reads an .npz file and writes what was in it: npz IN OUT; check_npz.py compares.

#include <iostream>

#include "tandem/io/npy.h"
#include "tandem/tandem.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    tandem::io::save_npz(argv[2], tandem::io::load_npz(argv[1]));
  } catch (const tandem::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
