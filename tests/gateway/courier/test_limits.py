from gateway.courier.limits import CourierLimits


def test_the_last_tenth_is_kept_for_urgent_items() -> None:
    limits = CourierLimits(max_depth=20)
    assert [limits.room_for(priority) for priority in range(5)] == [20, 20, 18, 18, 18]


def test_a_reserve_is_at_least_one_place() -> None:
    assert CourierLimits(max_depth=5).room_for(2) == 4


def test_no_reserve_when_it_is_switched_off() -> None:
    assert CourierLimits(max_depth=5, reserve_share=0.0).room_for(4) == 5
