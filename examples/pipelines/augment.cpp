// An input pipeline for `td data-bench`: made-up pictures are shuffled, changed at random and put
// into batches.
//
//     build/bin/td data-bench build/pipelines/augment.so --step 2
//
// Elsewhere it is built with: c++ -std=c++20 -shared -fPIC augment.cpp -o augment.so -ltandem
#include <tandem/tandem.h>

namespace td = tandem;

extern "C" __attribute__((visibility("default"))) void tandem_dataset(td::data::Dataset* out) {
  const td::Tensor pictures = td::random::uniform({1024, 32, 32, 3});
  const td::Tensor labels = td::random::uniform({1024}, {.maxval = 10, .dtype = td::int64});
  *out = td::data::from_tensor_slices({pictures, labels})
             .shuffle(512, {.seed = 1})
             .repeat()
             .map([](td::Tensor x, td::Tensor y) {
               x = td::image::random_flip_left_right(x);
               return std::pair(td::image::per_image_standardization(x), y);
             })
             .batch(32);
}
