#include "tests/unit/data/data_util.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <thread>

namespace tandem::data {

std::vector<std::int64_t> numbers(Iterator& iterator, std::size_t limit) {
  std::vector<std::int64_t> all;
  Element element;
  while (all.size() < limit && iterator.next(element)) {
    all.push_back(element.at(0).item<std::int64_t>());
  }
  return all;
}

std::vector<std::int64_t> numbers(const Dataset& dataset, std::size_t limit) {
  Iterator iterator = dataset.iterator();
  return numbers(iterator, limit);
}

std::string text(const Dataset& dataset) {
  std::string all;
  for (const Element& element : dataset) {
    if (!all.empty()) all += " | ";
    for (std::size_t i = 0; i < element.size(); ++i) {
      std::string one = element[i].to_string();
      std::replace(one.begin(), one.end(), '\n', ' ');
      all += (i == 0 ? "" : "; ") + one;
    }
  }
  return all;
}

std::vector<std::int64_t> upto(std::int64_t count) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::size_t thread_count() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/self/task")) {
    ++count;
  }
  return count;
}

std::size_t threads_at_rest() {
  std::size_t count = thread_count();
  // Longer than the thread that looks after cancellations stays without any.
  for (int same = 0; same < 60;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const std::size_t now = thread_count();
    same = now == count ? same + 1 : 0;
    count = now;
  }
  return count;
}

std::vector<std::string> rest(Iterator& iterator) {
  std::vector<std::string> all;
  Element element;
  while (all.size() < 1000 && iterator.next(element)) {
    std::string one;
    for (const Tensor& tensor : element) one += tensor.to_string() + ";";
    all.push_back(one);
  }
  return all;
}

std::vector<std::string> events(Iterator& iterator, std::size_t limit) {
  std::vector<std::string> all;
  Element element;
  while (all.size() < limit) {
    try {
      if (!iterator.next(element)) break;
      std::string one;
      for (const Tensor& tensor : element) one += tensor.to_string() + ";";
      all.push_back(one);
    } catch (const Error& error) {
      all.push_back(std::string("error: ") + error.what());
    }
  }
  return all;
}

std::vector<std::string> events(const Dataset& dataset, std::size_t limit) {
  Iterator iterator = dataset.iterator();
  return events(iterator, limit);
}

void expect_fuses(const Dataset& dataset, std::size_t saves) {
  const std::vector<std::string> all = events(unfused(dataset), 200);
  EXPECT_EQ(events(dataset, 200), all);
  EXPECT_EQ(dataset.cardinality(), unfused(dataset).cardinality());
  for (std::size_t stop = 0; stop <= std::min(all.size() + 1, saves); ++stop) {
    Iterator it = dataset.iterator();
    const std::vector<std::string> before = events(it, stop);
    const std::string saved = it.save();
    Iterator other = dataset.iterator();
    events(other, 1);
    other.restore(saved);
    EXPECT_EQ(events(other, 100), events(it, 100)) << "saved after " << stop;
  }
}

void expect_resumes(const std::function<Dataset()>& make) {
  const std::vector<std::string> all = [&] {
    auto it = make().iterator();
    return rest(it);
  }();
  ASSERT_FALSE(all.empty());
  for (std::size_t stop = 0; stop <= all.size() + 1; ++stop) {
    const Dataset original = make();
    auto it = original.iterator();
    Element element;
    for (std::size_t i = 0; i < stop; ++i) it.next(element);
    const std::string saved = it.save();
    const std::vector<std::string> remaining = rest(it);
    ASSERT_EQ(remaining.size(), all.size() - std::min(stop, all.size())) << stop;
    const Dataset other = make();
    auto restored = other.iterator();
    restored.next(element);
    restored.restore(saved);
    EXPECT_EQ(rest(restored), remaining) << stop;
    auto next = original.iterator();
    auto next_restored = other.iterator();
    EXPECT_EQ(rest(next), rest(next_restored)) << "iteration after " << stop;
  }
}

}  // namespace tandem::data
