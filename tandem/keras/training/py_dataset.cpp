#include "tandem/keras/py_dataset.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "tandem/core/error.h"

namespace tandem::keras::utils {

PyDataset::~PyDataset() = default;

data::Dataset dataset(const std::shared_ptr<PyDataset>& batches, bool shuffle) {
  if (!batches) throw InvalidArgumentError("utils::dataset was given no PyDataset.");
  if (batches->size() <= 0) throw InvalidArgumentError("utils::dataset: the PyDataset is empty.");
  data::ElementSpec spec;
  for (const Tensor& t : batches->get(0)) {
    std::vector<std::int64_t> sizes = t.shape().to_vector();
    if (!sizes.empty()) sizes.front() = -1;
    spec.push_back({t.dtype(), PartialShape(sizes)});
  }
  const auto pass = std::make_shared<std::uint64_t>(0);
  const auto make = [batches, shuffle, pass]() -> data::Generator {
    std::vector<std::int64_t> order(static_cast<std::size_t>(batches->size()));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    std::mt19937_64 random(++*pass);
    if (shuffle) std::shuffle(order.begin(), order.end(), random);
    return [batches, order = std::move(order), at = std::size_t{0}](data::Element& out) mutable {
      if (at == order.size()) {
        batches->on_epoch_end();
        return false;
      }
      out = batches->get(order[at++]);
      return true;
    };
  };
  return data::from_generator(make, std::move(spec));
}

}  // namespace tandem::keras::utils
