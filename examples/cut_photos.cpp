// Cuts JPEG files out of the photographs in examples/data/photos, to be read by pipelines.
//
// usage: cut_photos [FOLDER [COUNT [HEIGHT WIDTH]]]
#include <cstdio>
#include <cstdlib>
#include <string>

#include "photos.h"

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "build/photos";
  photos::Cut wanted{.count = argc > 2 ? std::atoll(argv[2]) : 16};
  if (argc > 4) {
    wanted.height = std::atoll(argv[3]);
    wanted.width = std::atoll(argv[4]);
  }
  try {
    photos::cut(folder, wanted);
  } catch (const tandem::Error& error) {
    std::fprintf(stderr, "cut_photos: %s\n", error.what());
    return 1;
  }
  std::printf("%lld files of %lld x %lld pixels in %s\n", static_cast<long long>(wanted.count),
              static_cast<long long>(wanted.width), static_cast<long long>(wanted.height),
              folder.c_str());
}
