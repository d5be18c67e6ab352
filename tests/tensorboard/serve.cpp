// serve: summaries in memory, served to TensorBoard. The first line is where; each line on stdin is
// a step's loss, which is written at once.
#include <iostream>
#include <vector>

#include "tandem/board/data_provider_server.h"
#include "tandem/io/event_store.h"
#include "tandem/io/hparams.h"
#include "tandem/io/summary.h"
#include <tandem/tandem.h>

namespace td = tandem;

int main() {
  const td::io::EventStore store;
  const td::board::DataProviderServer server(store);
  const td::summary::SummaryWriter writer = store.writer("train");
  const auto on = writer.as_default();
  td::summary::histogram("waves", td::Tensor{1.0, 2.0, 2.5}, {.step = 0});
  td::summary::image("picture", td::zeros({2, 300, 400, 3}), {.step = 0});
  td::summary::audio("tone", td::zeros({1, 100, 1}), 8000, {.step = 0});
  td::summary::text("note", td::Tensor("**bold** words"), {.step = 0});
  td::summary::hparams({{"lr", 0.1}});
  auto f = td::function([](const td::Tensor& x) { return td::math::tanh(x); });
  td::summary::graph(f.concrete(td::Tensor(1.0)));
  writer.flush();
  std::cout << server.address() << std::endl;
  double loss = 0;
  for (int step = 0; std::cin >> loss; ++step) td::summary::scalar("loss", loss, {.step = step});
  return 0;
}
