"""An allocator that serves a plan: one block of memory, and buffers of it by name and step.

It reads what ``aclnn plan ... --csv plan.csv`` writes, and needs nothing but Python. A buffer is refused
outside its lifetime; two that share bytes at one step are refused when the plan is read.
"""

import csv
import io

PLAN = """id,lower,upper,size,offset
hidden,0,2,4096,0
scores,1,3,1024,4096
result,2,4,4096,0
"""


class PlanAllocator:
    """Memory of a plan; `step` says what runs."""

    def __init__(self, text: str) -> None:
        rows = csv.DictReader(io.StringIO(text))
        self.places = {
            row["id"]: (int(row["lower"]), int(row["upper"]), int(row["offset"]), int(row["size"]))
            for row in rows
        }
        self.size = max((at + size for _, _, at, size in self.places.values()), default=0)
        self.block = memoryview(bytearray(self.size))
        self.step = 0
        self.check()

    def check(self) -> None:
        """Refuse two buffers that share bytes at one step."""
        known = list(self.places.items())
        for i, (a, (first, end, at, size)) in enumerate(known):
            for b, (other_first, other_end, other_at, other_size) in known[i + 1 :]:
                at_once = first < other_end and other_first < end
                if at_once and at < other_at + other_size and other_at < at + size:
                    raise ValueError(f"{a} and {b} share bytes at step {max(first, other_first)}")

    def get(self, name: str) -> memoryview:
        """The memory of a buffer at the present step."""
        first, end, at, size = self.places[name]
        if not first <= self.step < end:
            raise ValueError(f"{name} at step {self.step}: its steps are {first} to {end - 1}")
        return self.block[at : at + size]


if __name__ == "__main__":
    memory = PlanAllocator(PLAN)
    memory.get("hidden")[:] = bytes([1]) * 4096
    memory.step = 2
    memory.get("result")[:] = memory.get("scores")[:1].tobytes() * 4096
    try:
        memory.get("hidden")
    except ValueError as error:
        print(f"{memory.size} bytes; refused: {error}")
