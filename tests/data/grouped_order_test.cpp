#include "data/order/grouped_order.hpp"

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "data/order/sample_order.hpp"

namespace troupe {
namespace {

/// `pictures` rows with field 0, then `texts` rows without, each of another length.
std::vector<RowForm> Rows(std::int64_t pictures, std::int64_t texts) {
  std::vector<RowForm> rows;
  for (std::int64_t i = 0; i < pictures + texts; ++i) {
    rows.push_back({i, i < pictures ? std::uint64_t{1} : std::uint64_t{0}, 10 + i * 7 % 101});
  }
  return rows;
}

/// Groups of rows whose order of training is random.
GroupedOrder Grouped(std::uint64_t seed, std::int64_t group, const std::vector<RowForm>& rows,
                     std::int64_t window = GroupTerms().window) {
  const auto form_at = [rows, seed](std::int64_t place) {
    const std::int64_t size = std::ssize(rows);
    return rows[static_cast<std::size_t>(SampleOrder(seed, place / size, place % size, size))];
  };
  return GroupedOrder({seed, group, std::ssize(rows), form_at, window});
}

Interval StepAt(std::int64_t step, std::int64_t batch) {
  return {step * batch, (step + 1) * batch};
}

/// The rows of steps [first, last), one after the other.
std::vector<std::int64_t> Steps(const GroupedOrder& order, std::int64_t batch, std::int64_t first,
                                std::int64_t last) {
  std::vector<std::int64_t> rows;
  for (std::int64_t step = first; step < last; ++step) {
    const auto one = order.RowsAt(StepAt(step, batch));
    rows.insert(rows.end(), one->begin(), one->end());
  }
  return rows;
}

TEST_CASE("a grouped order loses and repeats no row, whatever the sizes", "[data]") {
  for (const std::int64_t batch : {1, 3, 4, 8, 50}) {
    for (std::int64_t pictures = 0; pictures <= 20; pictures += 5) {
      for (std::int64_t texts = 1; texts <= 19; texts += 3) {
        INFO("batch " << batch << ", " << pictures << " pictures, " << texts << " texts");
        const std::int64_t size = pictures + texts;
        const std::int64_t window = texts % 2 == 0 ? 13 : 1000;
        const GroupedOrder order = Grouped(9, batch, Rows(pictures, texts), window);
        // After `size` steps a step ends with an epoch, and every row was drawn `batch` times.
        std::vector<std::int64_t> seen(static_cast<std::size_t>(size));
        for (const std::int64_t row : Steps(order, batch, 0, size)) ++seen.at(std::size_t(row));
        CHECK(std::ranges::count(seen, batch) == size);
      }
    }
  }
}

TEST_CASE("each epoch of a grouped order ends with every row drawn once", "[data]") {
  // 30 rows in steps of 6: epochs of 5 steps.
  const GroupedOrder order = Grouped(2, 6, Rows(17, 13));
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    const auto rows = Steps(order, 6, 5 * epoch, 5 * epoch + 5);
    CHECK(std::set<std::int64_t>(rows.begin(), rows.end()).size() == 30);
  }
  CHECK(Steps(order, 6, 0, 5) != Steps(order, 6, 5, 10));
}

TEST_CASE("all but few steps have samples of one modality, longest first", "[data]") {
  const auto rows = Rows(400, 250);
  const GroupedOrder order = Grouped(4, 16, rows);
  int mixed = 0;
  bool descends = true;
  std::vector<std::uint64_t> kinds;
  for (std::int64_t step = 0; step < 203; ++step) {  // 5 epochs of 650 places
    const auto drawn = order.RowsAt(StepAt(step, 16));
    REQUIRE(drawn->size() == 16);
    std::set<std::uint64_t> fields;
    std::int64_t before = 1000;
    for (const std::int64_t row : *drawn) {
      const RowForm& form = rows.at(static_cast<std::size_t>(row));
      fields.insert(form.fields);
      descends = descends && form.length <= before;
      before = form.length;
    }
    mixed += fields.size() > 1;
    kinds.push_back(*fields.begin());
  }
  CHECK(descends);
  CHECK(mixed <= 5 * 3);  // the ends of an epoch, and one step of what fills no other
  // The two kinds alternate at random: neither comes first as a whole.
  CHECK_FALSE(std::ranges::is_sorted(kinds));
  CHECK_FALSE(std::ranges::is_sorted(kinds, std::greater{}));
}

TEST_CASE("a step of a grouped order is a function of seed, batch and number", "[data]") {
  const auto rows = Rows(40, 23);
  const GroupedOrder order = Grouped(5, 8, rows);
  const auto later = *order.RowsAt(StepAt(37, 8));
  // Another process, which resumes at that step, and one that has seen all before it.
  CHECK(*Grouped(5, 8, rows).RowsAt(StepAt(37, 8)) == later);
  const GroupedOrder other = Grouped(5, 8, rows);
  for (std::int64_t step = 0; step < 37; ++step) other.RowsAt(StepAt(step, 8));
  CHECK(*other.RowsAt(StepAt(37, 8)) == later);
  CHECK(*Grouped(6, 8, rows).RowsAt(StepAt(37, 8)) != later);
}

TEST_CASE("steps of another size go through the same order", "[data]") {
  const GroupedOrder order = Grouped(5, 8, Rows(40, 23));
  auto by_eight = Steps(order, 8, 0, 63);  // 8 epochs
  auto mixed = Steps(order, 8, 0, 3);      // 24 places
  const auto rest = Steps(order, 12, 2, 42);
  mixed.insert(mixed.end(), rest.begin(), rest.end());
  std::ranges::sort(by_eight);
  std::ranges::sort(mixed);
  CHECK(by_eight == mixed);
}

TEST_CASE("groups are made within windows, and each is read once", "[data]") {
  const auto rows = Rows(400, 250);
  std::int64_t asked = 0;
  const auto form_at = [&](std::int64_t place) {
    ++asked;
    return rows[static_cast<std::size_t>(SampleOrder(4, place / 650, place % 650, 650))];
  };
  const GroupedOrder order({4, 16, 650, form_at, 200});  // four windows an epoch, of 163 places
  int mixed = 0;
  for (std::int64_t step = 0; step < 203; ++step) {
    std::set<std::uint64_t> fields;
    for (const std::int64_t row : *order.RowsAt(StepAt(step, 16))) {
      fields.insert(rows.at(static_cast<std::size_t>(row)).fields);
    }
    mixed += fields.size() > 1;
  }
  CHECK(mixed <= 4 * 5 * 3);
  CHECK(asked == 5 * 650);
  for (std::int64_t window = 0; window < 4; ++window) {
    const Interval places{window * 163, std::min<std::int64_t>(650, (window + 1) * 163)};
    std::set<std::int64_t> drawn;
    for (std::int64_t place = places.begin; place < places.end; ++place) {
      drawn.insert(form_at(place).row);
    }
    const auto grouped = order.RowsAt(places);
    CHECK(std::set<std::int64_t>(grouped->begin(), grouped->end()) == drawn);
  }
}

TEST_CASE("rows of one length and one modality come in a random order", "[data]") {
  std::vector<RowForm> rows;
  for (std::int64_t i = 0; i < 500; ++i) rows.push_back({i, 1, 12});
  const auto drawn = Steps(Grouped(3, 10, rows), 10, 0, 50);
  int close = 0;
  for (std::size_t i = 1; i < drawn.size(); ++i) close += std::abs(drawn[i] - drawn[i - 1]) <= 5;
  CHECK(close < 30);  // of 499, about 10 in a random order
}

TEST_CASE("several threads read the same steps of a grouped order", "[data]") {
  const GroupedOrder order = Grouped(5, 8, Rows(40, 23));
  const auto alone = Steps(Grouped(5, 8, Rows(40, 23)), 8, 0, 60);
  std::vector<std::vector<std::int64_t>> read(4);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : read) threads.emplace_back([&] { mine = Steps(order, 8, 0, 60); });
  }
  for (const auto& mine : read) CHECK(mine == alone);
}

}  // namespace
}  // namespace troupe
